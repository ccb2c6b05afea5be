"""A new windowed table and a new stateful one over rows that landed long ago, against both from
the first row on.

    python -m bench.catchup --rows 3000000

lands rows with both tables there (`steady`), lands them and then adds the tables (`new`), does the
same after the log of the landing was cut, so that they begin with a snapshot (`cut`), and with
`batch="all"` (`at once`). Each runs in a process of its own; the answers must be equal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import functions as F

import millstream as ms
from bench.memory import Peak
from millstream.lake.lease import Lease
from millstream.lake.log import commit_path, commits, facts_of
from millstream.observe.history import History
from millstream.run.query import StreamRun
from millstream.run.upkeep import maintain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

RESULTS = Path(__file__).parent / "results" / "catchup.json"
WAYS = ("steady", "new", "cut", "at once")
FILE_ROWS, USERS = 30_000, 20_000
START_US = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * 1_000_000


@ms.stateful(key="user", state="n BIGINT", emits="user BIGINT, n BIGINT", order="arrival")
def counted_rows(
    user: int,
    rows: tuple[Any, ...],
    state: Any,
    timer: ms.Timer,  # noqa: ARG001
) -> Iterator[tuple[int, int]]:
    state.n = (state.n or 0) + len(rows)
    yield user, state.n


def write_input(folder: Path, rows: int) -> None:
    """Write what is landed: ten minutes of events in each file."""
    folder.mkdir(parents=True)
    dice = np.random.default_rng(1)
    for number in range(rows // FILE_ROWS):
        ids = np.arange(number * FILE_ROWS, (number + 1) * FILE_ROWS)
        columns = {
            "user": dice.integers(0, USERS, FILE_ROWS),
            "at": pa.array(START_US + ids * 12_000, pa.timestamp("us", tz="UTC")),
            "price": dice.integers(0, 100, FILE_ROWS),
        }
        pq.write_table(pa.table(columns), folder / f"{number:05d}.parquet")


def app_of(place: Path, way: str, batch: str) -> ms.App:
    app = ms.App("catchup", home=place / way, keep_versions="0 seconds")
    schema = "user BIGINT, at TIMESTAMP, price BIGINT"

    @app.source(event_time="at", watermark="1 minute", batch="10 seconds")
    def orders() -> ms.Files:
        files = str(place / "input" / "*.parquet")
        return ms.Files(files, format="parquet", schema=schema, options={"maxFilesPerTrigger": 1})

    @app.table(batch=batch)
    def per_minute(orders: DataFrame) -> DataFrame:
        sums = F.count("*").alias("orders"), F.sum("price").alias("spent")
        return orders.groupBy(F.window("at", "1 minute"), F.col("user") % 100).agg(*sums)

    @app.table(mode="update", key=["user"], batch=batch)
    def counted(orders: DataFrame) -> DataFrame:
        return counted_rows(orders).groupBy("user").agg(F.max("n").alias("n"))

    return app


def run_beside(app: ms.App, rows: int) -> None:
    """Run the app as a stream until all rows have landed and both tables have read them."""
    running = app.open({"master": "local[2]", "maintain": False})
    orders = running.home.table("orders")

    def look() -> None:
        streams = [each.running for each in running.queries]
        is_quiet = all(isinstance(each, StreamRun) and each.is_waiting for each in streams)
        if is_quiet and facts_of(orders).totals.get("ok", 0) >= rows:
            running.ask_to_stop()

    running.serve(look)
    running.raise_if_stopped_for_good()


def one(place: Path, way: str, rows: int) -> dict[str, Any]:
    """Do it one way; return what it took."""
    app = app_of(place, way, "all" if way == "at once" else "10 seconds")
    if way != "steady":
        app.run(once=True, select=["orders"], master="local[2]")
    home = app.home()
    if way == "cut":
        with Lease.acquire(home) as lease:
            maintain(app.graph, lease)
        assert not commit_path(home.table("orders"), 0).exists()
    begun = time.monotonic()
    with Peak() as peak:
        if way == "steady":
            run_beside(app, rows)
        app.run(once=True, master="local[2]", maintain=False)
    found: dict[str, Any] = {"seconds": round(time.monotonic() - begun, 1)}
    found["peak_mib"] = round(peak.mib)
    for name in "per_minute", "counted":
        log = [commit.facts for commit in commits(home.table(name)) if commit.is_batch]
        read = [facts.counts.get("input", 0) for facts in log if facts is not None]
        found[name] = {"batches": len(read), "answer": _answer(home.table(name))}
    with History(home.history) as history:
        found["behind"] = [record.behind_rows for record in history.batches("counted")]
    return found


def _answer(table: Path) -> list[int]:
    rows = DeltaTable(str(table)).to_pyarrow_table()
    number = "orders" if "orders" in rows.column_names else "n"
    return [rows.num_rows, sum(int(n or 0) for n in rows.column(number).to_pylist())]


def main() -> None:
    """Do it each way, in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--one", choices=WAYS)
    parser.add_argument("--place", type=Path)
    typed = parser.parse_args()
    if typed.one:
        (typed.place / "found.json").write_text(json.dumps(one(typed.place, typed.one, typed.rows)))
        return
    results: dict[str, Any] = {"rows": typed.rows}
    if RESULTS.exists() and len(typed.ways) < len(WAYS):
        results = json.loads(RESULTS.read_text())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_input(place / "input", typed.rows)
        for way in typed.ways:
            words = ["--one", way, "--place", str(place), "--rows", str(typed.rows)]
            subprocess.run([sys.executable, "-m", "bench.catchup", *words], check=True)
            results[way] = json.loads((place / "found.json").read_text())
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    answers = {way: [results[way][name]["answer"] for name in ("per_minute", "counted")]
               for way in WAYS if way in results}  # fmt: skip
    assert len({str(answer) for answer in answers.values()}) == 1, answers


if __name__ == "__main__":
    main()
