"""The process that reads the state of a key with Spark, and ends: the console has no JVM.

python -m millstream.console.state_child < REQUEST
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from millstream.errors import MillstreamError
from millstream.lake.home import Home
from millstream.spark.session import open_session
from millstream.views.json_text import FaultView, to_json
from millstream.views.kept import state_of_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_NICE = 10


def main() -> None:
    """Answer one request."""
    os.nice(_NICE)
    sys.stdout.write(to_json(_reply(json.loads(sys.stdin.read()))) + "\n")
    sys.stdout.flush()
    # Spark's own way out takes seconds.
    os._exit(0)


def _reply(asked: Mapping[str, Any]) -> object:
    home = Home.at(asked["home"])
    try:
        spark = open_session("state", master="local[1]", log_dir=home.logs)
        view = state_of_key(spark, home, asked["name"], asked["key"], most=asked["most"])
    except MillstreamError as error:
        return {"fault": FaultView.of(error)}
    return {"columns": view.columns, "kinds": ["text"] * len(view.columns), "rows": view.rows}


if __name__ == "__main__":
    main()
