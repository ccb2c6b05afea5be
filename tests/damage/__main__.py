"""`python -m tests.damage`: damage checkpoints in every way, and judge."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.damage.sweep import Sweep
from tests.document import find, write_between_marks
from tests.harness import HarnessError

from millstream.errors import MillstreamError
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; give its exit code."""
    asked = _parser().parse_args(arguments)
    today = datetime.now(UTC).date().isoformat()
    try:
        with tempfile.TemporaryDirectory(prefix="millstream-damage-") as place:
            make = find(asked.home)
            spark = open_session("damage", log_dir=Path(place))
            finished = make(Path(place), spark)
            found = Sweep(today, asked.seed).over(finished, Path(place), asked.cases, _say)
        _say(f"\n{found.to_markdown()}")
        if asked.json:
            asked.json.parent.mkdir(parents=True, exist_ok=True)
            asked.json.write_text(found.to_json())
        if asked.document:
            write_between_marks(asked.document, "damage", found.to_markdown())
        if found.wrong:
            wrong = "\n  ".join(found.wrong)
            _say(f"tables are wrong after damage of --seed {asked.seed}, unnoticed:\n  {wrong}")
            return 1
    except MillstreamError as error:
        _say(str(error))
        return error.exit_code
    except HarnessError as error:
        _say(str(error))
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    prog = "python -m tests.damage"
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("home", metavar="MODULE:NAME", help="makes a home that has run in a folder")
    parser.add_argument("--cases", type=int, default=250)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to keep the results")
    parser.add_argument("--document", type=Path, metavar="FILE", help="where to put the table")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
