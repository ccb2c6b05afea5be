"""The history of 100 datasets: how soon an overview is made, and how large the file becomes."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import millstream as ms
from millstream.lake.home import Home
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord
from millstream.views.json_text import to_json
from millstream.views.overview import OverviewView
from millstream.views.status import StatusView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.model.graph import Graph

HERE = Path(__file__).parent
DATASETS, STEPS, LOOKS = 100, (10_000, 200_000), 9
_EVERY = timedelta(seconds=5)


def app_of() -> ms.App:
    app = ms.App("wide")
    app.source(name="events")(lambda: ms.Memory("id BIGINT"))
    for n in range(DATASETS - 1):
        app.sql(f"t{n:02d}", f"SELECT id FROM {'events' if n < 9 else f't{n // 2:02d}'}")
    return app


def batches(graph: Graph, first: int, last: int, start: datetime) -> Iterator[list[BatchRecord]]:
    """Give a batch of every dataset, and again, as a driver records them."""
    for number in range(first, last):
        at = start + number * _EVERY
        yield [
            BatchRecord(
                dataset.name,
                number,
                at,
                duration_ms=400 + number % 90,
                phases={"addBatch": 300, "getBatch": 3, "queryPlanning": 40, "walCommit": 21},
                input=1000 + number % 70,
                output=1000,
                counts={"input": 1000 + number % 70, "written": 1000, "quarantined": number % 70},
                complete_to=at,
                behind_rows=number % 900,
                behind_s=0.5,
                total=1000 * number,
            )
            for dataset in graph.ordered
        ]


def overview_s(home: Home, graph: Graph, now: datetime) -> tuple[float, float]:
    """Make what the page of the overview asks for; give seconds by the clock, and processor s."""
    took, used = list[float](), list[float]()
    with History.read_only(home.history) as history:
        for _ in range(LOOKS):
            began, before = time.monotonic(), time.process_time()
            view = OverviewView.of(home, graph, history, now=now)
            to_json((view, StatusView.beside(view, home, graph)))
            took.append(time.monotonic() - began)
            used.append(time.process_time() - before)
    return statistics.median(took), statistics.median(used)


def main() -> None:
    graph, report = app_of().graph, dict[str, Any]()
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as place:
        home = Home.at(Path(place))
        home.prepare("wide", sources=["events"])
        start, written = datetime.now(UTC) - STEPS[-1] // DATASETS * _EVERY, 0
        for step in STEPS:
            first, last = written // DATASETS, step // DATASETS
            begin = time.process_time()
            with HistoryWriter(home.history) as writer:
                for records in batches(graph, first, last, start):
                    assert writer.write(records)
            used = (time.process_time() - begin) / (step - written)
            written = step
            took, processor = overview_s(home, graph, start + last * _EVERY)
            size = sum(file.stat().st_size for file in home.history.parent.glob("history.db*"))
            report[f"after {step:,} batches"] = {
                "overview, s": round(took, 3),
                "overview, processor s": round(processor, 3),
                "history, MB": round(size / 1e6, 1),
                "processor us to record a batch": round(used * 1e6),
            }
            print(report, flush=True)
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "datasets": DATASETS,
        "load": os.getloadavg()[0],
        **report,
        "wanted": "overview in less than 1 s, history in at most 100 MB",
    }
    (HERE / "results" / "wide.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
