"""The process in which one query of the console runs: few resources, no secrets, gone after it.

    python -m millstream.console.sql_child

It reads two lines: its limits, as soon as it is started, so that it imports what it needs while
nobody waits; then the query. It prints one line, the answer, and ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import threading
import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream import sql
from millstream.errors import MillstreamError, fault
from millstream.lake.home import Home
from millstream.sql.duckdb_query import DuckDBEngine
from millstream.sql.limits import Limits, limited_process
from millstream.views.answer_file import write_csv, write_parquet
from millstream.views.json_text import FaultView, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.sql.answer import Answer

_KINDS: Mapping[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    Decimal: "number",
    datetime: "time",
    date: "time",
    timedelta: "interval",
    bytes: "bytes",
    list: "list",
    dict: "struct",
}
_NICE = 10


def main() -> None:
    """Answer one query."""
    limits = json.loads(sys.stdin.readline())
    os.nice(_NICE)
    limit_process(limits)
    import duckdb  # noqa: F401 - while nobody waits
    import pyarrow  # noqa: F401

    if not (line := sys.stdin.readline()):
        return
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout.write(to_json(reply(limits, json.loads(line))) + "\n")
    sys.stdout.flush()
    # A query that was cancelled may run on in a thread that DuckDB cannot end.
    os._exit(0)


def limit_process(limits: Mapping[str, Any]) -> None:
    """Set what the process may use, besides what the query is limited to."""
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits["disk_mb"] << 20),
        (resource.RLIMIT_CPU, limits["time_s"] * 4),
    ):
        _, hard = resource.getrlimit(kind)
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (lower, lower))


def _end_with_parent() -> None:
    """End soon after the console does."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def reply(limits: Mapping[str, Any], asked: Mapping[str, Any]) -> object:
    """Run a query; return its answer or its fault."""
    began = time.monotonic()
    bounds = Limits(
        time=timedelta(seconds=limits["time_s"]),
        rows=limits["rows"],
        memory_mb=limits["memory_mb"],
        disk_mb=limits["disk_mb"],
    )
    home = Home.at(limits["home"])

    def take(answer: Answer) -> dict[str, object]:
        if asked.get("file"):
            return {"rows": _write(answer, asked["format"], asked["file"])}
        return _shown(answer, min(asked.get("most") or bounds.rows, bounds.rows), limits["bytes"])

    try:
        with limited_process(bounds.memory_mb):
            answer = sql.run(home, DuckDBEngine(home, bounds), asked["sql"], take)
    except MillstreamError as error:
        return {"fault": FaultView.of(error)}
    except (RecursionError, OSError, ValueError) as error:
        unanswered = fault("SQL_FAILED", cause=f"{type(error).__name__}: {error}")
        return {"fault": FaultView.of(unanswered)}
    return {**answer, "took_ms": round((time.monotonic() - began) * 1000)}


def _write(answer: Answer, kind: str, file: str) -> int:
    return write_parquet(answer, file) if kind == "parquet" else write_csv(answer, file)


def _shown(answer: Answer, most: int, most_bytes: int) -> dict[str, object]:
    rows: list[tuple[Any, ...]] = []
    size, is_cut = 0, False
    for batch in answer.batches():
        for row in batch:
            size += len(to_json(row))
            if len(rows) == most or size > most_bytes:
                is_cut = True
                break
            rows.append(row)
        if is_cut:
            break
    kinds = [_kind(column, rows) for column in range(len(answer.columns))]
    return {"columns": answer.columns, "kinds": kinds, "rows": rows, "is_cut": is_cut}


def _kind(column: int, rows: list[tuple[Any, ...]]) -> str:
    found = next((row[column] for row in rows if row[column] is not None), None)
    return _KINDS.get(type(found), "text")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
