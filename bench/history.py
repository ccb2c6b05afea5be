"""What history costs: small batches landed with it and without it, in turn, in one process."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from unittest.mock import patch

import millstream as ms
from bench.data import DDL, put
from bench.memory import processor_s
from millstream.observe.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    Beside = Callable[[Path], AbstractContextManager[object]]
    """What goes on beside a run, given its home."""

P = ParamSpec("P")
T = TypeVar("T")

HERE = Path(__file__).parent
ROWS, FILES, ROUNDS = 1_000, 30, 3
WANTED = 0.97


def app_of(folder: Path) -> ms.App:
    app = ms.App("bench")

    @app.source(event_time="at", watermark="10 minutes", freshness="1 hour")
    def bronze() -> ms.Files:
        return ms.Files(str(folder), schema=DDL, options={"maxFilesPerTrigger": 1})

    @app.table
    def silver(bronze: DataFrame) -> DataFrame:
        return bronze.where("celsius BETWEEN -60 AND 80")

    return app


@dataclass(frozen=True)
class Cost:
    """Rows a second by the clock, and seconds of the processors for all rows."""

    rate: float
    processor_s: float


def cost(folder: Path, home: Path, rows: int = ROWS, beside: Beside = nullcontext) -> Cost:
    """Land each file as a batch of its own."""
    running = app_of(folder).open({"home": home, "once": True, "fail_fast": True})
    with beside(home):
        began, used = time.monotonic(), processor_s(os.getpid())
        running.serve()
        took, used = time.monotonic() - began, processor_s(os.getpid()) - used
    running.raise_if_stopped_for_good()
    return Cost(rows * FILES / took, used)


def recording_nothing(measure: Callable[P, T]) -> Callable[P, T]:
    """Return the same measurement with nothing recorded."""

    def measured(*args: P.args, **kwargs: P.kwargs) -> T:
        with (
            patch.object(Recorder, "begin", lambda *_: None),
            patch.object(Recorder, "on_commit", lambda *_: None),
            patch.object(Recorder, "end", lambda *_: None),
        ):
            return measure(*args, **kwargs)

    return measured


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        folder = place / "in"
        folder.mkdir()
        for number in range(FILES):
            put(folder, number, ROWS)
        for number in range(2):
            cost(folder, place / f"warm-{number}")
        on, off = list[Cost](), list[Cost]()
        for turn in range(ROUNDS):
            sides = [(off, recording_nothing(cost), "off"), (on, cost, "on")]
            for costs, measure, name in sides if turn % 2 else reversed(sides):
                costs.append(measure(folder, place / f"{name}-{turn}"))
                print(name, costs[-1], flush=True)
    report: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows/s with history": round(statistics.median(c.rate for c in on)),
        "rows/s without": round(statistics.median(c.rate for c in off)),
        "processor s with history": round(statistics.median(c.processor_s for c in on), 1),
        "processor s without": round(statistics.median(c.processor_s for c in off), 1),
        "wanted at least": WANTED,
    }
    for what, more in (("rows/s", 1), ("processor s", -1)):
        ratio = report[f"{what} with history"] / report[f"{what} without"]
        report[f"{what}, ratio"] = round(ratio**more, 3)
    print(report)
    (HERE / "results" / "history.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
