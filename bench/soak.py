"""An app over thousands of small batches, maintained and not: what grows, and what stays.

    python -m bench.soak --hours 1

runs it twice, each for that time, and writes `bench/results/soak.json`: the batch time of each
query in the last tenth of the run against that in the second tenth, files, bytes and memory over
time, and how long `status` and `query` take at the end. Versions are kept for a minute, so that
what happens to an ordinary app in months happens here in an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

import millstream as ms
from bench.memory import resident_bytes
from millstream.lake.log import facts_of
from millstream.lake.maintenance import read_maintained, sizes_of
from millstream.model.dataset import VERDICTS

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from millstream.lake.home import Home
    from millstream.run.application import ApplicationRun

RESULTS = Path(__file__).parent / "results"
RATE, USERS, TENTHS = 20, 50, 10
SAMPLE_EVERY_S = 10.0


def order(dice: random.Random, number: int) -> Mapping[str, Any]:
    return {"user": f"user-{dice.randrange(USERS)}", "price": dice.randrange(100), "n": number}


@ms.stateful(key="user", state="n BIGINT", emits="user STRING, n BIGINT")
def counted_rows(
    user: str,
    rows: tuple[Any, ...],
    state: Any,
    timer: ms.Timer,  # noqa: ARG001
) -> Iterator[tuple[str, int]]:
    state.n = (state.n or 0) + len(rows)
    yield user, state.n


def app_of(place: Path) -> ms.App:
    """Declare one of each: landing, append, update, stateful, complete and a store."""
    app = ms.App("soak", home=place / "home", keep_versions="1 minute")
    schema = "user STRING, at TIMESTAMP, price BIGINT, n BIGINT"

    @app.source(event_time="at", watermark="10 seconds")
    def orders() -> ms.Generator:
        return ms.Generator(schema, rate=RATE, event_time="at", make=order)

    @app.table(expect={"paid": "price > 0"})
    def clean(orders: DataFrame) -> DataFrame:
        return orders.select("user", "at", "price")

    @app.table(mode="update", key=["user"])
    def spent(clean: DataFrame) -> DataFrame:
        return clean.groupBy("user").agg({"price": "sum"}).withColumnRenamed("sum(price)", "spent")

    @app.table(mode="complete")
    def total(spent: DataFrame) -> DataFrame:
        return spent.agg({"spent": "sum"}).withColumnRenamed("sum(spent)", "spent")

    @app.table
    def counted(clean: DataFrame) -> DataFrame:
        return counted_rows(clean)

    @app.serve(to=ms.SQLite(str(place / "store.db"), table="clean"))
    def served(clean: DataFrame) -> DataFrame:
        return clean

    return app


@dataclass
class Course:
    """What is seen while the app runs."""

    home: Home
    length_s: float
    begun: float = field(default_factory=time.monotonic)
    batches: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """By query: each batch and how long it took, in seconds."""
    samples: list[dict[str, float]] = field(default_factory=list)

    def watch(self, running: ApplicationRun) -> None:
        """Note new batches, and now and then the sizes."""
        for supervised in running.queries:
            self._note(supervised.query.name, supervised.running.progress)
        elapsed = time.monotonic() - self.begun
        if elapsed >= len(self.samples) * SAMPLE_EVERY_S:
            self.samples.append({"at_s": round(elapsed, 1), **self._sizes()})
        if elapsed > self.length_s:
            running.ask_to_stop()

    def _note(self, name: str, progress: Mapping[str, Any] | None) -> None:
        seen = self.batches.setdefault(name, [])
        if progress is None or not progress.get("numInputRows"):
            return
        if not seen or progress["batchId"] > seen[-1][0]:
            seen.append((progress["batchId"], progress["durationMs"]["triggerExecution"] / 1000))

    def _sizes(self) -> dict[str, float]:
        sizes = [sizes_of(self.home.table(name)) for name in self.home.tables]
        below = resident_bytes(os.getpid())
        own = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return {
            "files": sum(size.files for size in sizes),
            "files_on_disk": sum(size.files_on_disk for size in sizes),
            "bytes_on_disk": sum(size.size_on_disk for size in sizes),
            "log_files": sum(size.log_files for size in sizes),
            "driver_mib": round(own / 2**20),
            "jvm_and_workers_mib": round((below - own) / 2**20),
        }


def soak(place: Path, *, length_s: float, maintain: bool) -> dict[str, Any]:
    """Run the app once; return what was seen."""
    app = app_of(place)
    running = app.open({"master": "local[2]", "maintain": maintain})
    course = Course(running.home, length_s)
    running.serve(lambda: course.watch(running))
    running.raise_if_stopped_for_good()
    app.run(once=True, master="local[2]", maintain=maintain)
    home = str(running.home.path)
    query = "SELECT count(*) FROM orders"
    return {
        "maintained": maintain,
        "rows": _rows(running.home, place / "store.db"),
        "done": {n: asdict(read_maintained(running.home, n)) for n in running.home.tables},
        "batches": {name: len(seen) for name, seen in course.batches.items()},
        "batch_s": {name: _tenths([took for _, took in s]) for name, s in course.batches.items()},
        "samples": course.samples,
        "status_s": _timed("status", "--home", home),
        "query_s": _timed("query", query, "--home", home),
    }


def _rows(home: Home, store: Path) -> dict[str, int]:
    """Count the rows of each table, and add up what should be equal."""
    tables = {name: DeltaTable(str(home.table(name))).to_pyarrow_table() for name in home.tables}
    rows = {name: table.num_rows for name, table in tables.items()}
    with closing(sqlite3.connect(store)) as served:
        rows["in the store"] = served.execute("SELECT count(*) FROM clean").fetchone()[0]
    rows["landed"] = sum(facts_of(home.table("orders")).totals.get(v, 0) for v in VERDICTS)
    for name, column in ("clean", "price"), ("spent", "spent"), ("total", "spent"):
        rows[f"sum of {name}"] = sum(int(n or 0) for n in tables[name].column(column).to_pylist())
    return rows


def _tenths(took: Sequence[float]) -> dict[str, float]:
    """Give the median batch time of the second and of the last tenth."""
    size = len(took) // TENTHS
    if not size:
        return {}
    second, last = median(took[size : 2 * size]), median(took[-size:])
    worst = sorted(took[size:])[int(0.95 * len(took[size:]))]
    return {
        "second_tenth": round(second, 3),
        "last_tenth": round(last, 3),
        "last_to_second": round(last / second, 3),
        "p95": round(worst, 3),
    }


def _timed(*typed: str) -> float:
    begun = time.monotonic()
    command = [sys.executable, "-m", "millstream.cli", *typed]
    done = subprocess.run(command, capture_output=True, check=False)
    return round(time.monotonic() - begun, 2) if done.returncode == 0 else -1.0


def main() -> None:
    """Run it with maintenance and without, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--one", choices=["maintained", "left"])
    parser.add_argument("--json", type=Path, default=RESULTS / "soak.json")
    typed = parser.parse_args()
    if typed.one:
        with tempfile.TemporaryDirectory() as place:
            maintain = typed.one == "maintained"
            found = soak(Path(place), length_s=typed.hours * 3600, maintain=maintain)
        typed.json.write_text(json.dumps(found))
        return
    results = {}
    for one in ("maintained", "left"):
        with tempfile.TemporaryDirectory() as folder:
            into = Path(folder) / "found.json"
            words = ["--one", one, "--hours", str(typed.hours), "--json", str(into)]
            subprocess.run([sys.executable, "-m", "bench.soak", *words], check=True)
            results[one] = json.loads(into.read_text())
    typed.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
