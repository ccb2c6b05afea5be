"""Rows at half of what a query can take, ten times as many for some seconds, then as before.

    python -m bench.burst

The query takes a fixed time for each row, so its capacity does not depend on the machine. It runs
with a target of two seconds for each batch and with `batch="all"`, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import millstream as ms
from millstream.lake.log import commits
from millstream.spark.arrow import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

RESULTS = Path(__file__).parent / "results" / "burst.json"
CAPACITY, TARGET_S = 5_000, 2.0
RATE, BURST_RATE = CAPACITY // 2, CAPACITY * 5
QUIET_S, BURST_S, LENGTH_S = 15.0, 6.0, 75.0
FILE_EVERY_S = 0.25


def feed(folder: Path, over: threading.Event) -> None:
    """Write files at the rate of the moment."""
    begun, number, written = time.monotonic(), 0, 0
    while not over.wait(FILE_EVERY_S):
        elapsed = time.monotonic() - begun
        burst_s = min(max(elapsed - QUIET_S, 0), BURST_S)
        due = int(RATE * elapsed + (BURST_RATE - RATE) * burst_s)
        lines = "".join(f'{{"n": {n}}}\n' for n in range(written, due))
        hidden = folder / f".{number:06d}"
        hidden.write_text(lines)
        hidden.rename(folder / f"{number:06d}.json")
        number, written = number + 1, due


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take a fixed time for each row, in each of two tasks."""
    for batch in batches:
        time.sleep(batch.num_rows * 2 / CAPACITY)
        yield batch


def app_of(place: Path, bound: str) -> ms.App:
    app = ms.App("burst", home=place / "home")

    @app.source(batch=f"{TARGET_S:g} seconds")
    def rows() -> ms.Files:
        return ms.Files(str(place / "input"), schema="n BIGINT")

    @app.table(batch=bound)
    def slow(rows: DataFrame) -> DataFrame:
        return map_in_arrow(rows.repartition(2), slowly, "n BIGINT")

    return app


def one(place: Path, bound: str) -> dict[str, Any]:
    """Run it for its length; return when each batch ended, its rows and how long it took."""
    (place / "input").mkdir()
    app, over = app_of(place, bound), threading.Event()
    running = app.open({"master": "local[2]"})
    feeder = threading.Thread(target=feed, args=(place / "input", over), daemon=True)
    begun, wall = time.monotonic(), time.time()
    feeder.start()

    def look() -> None:
        if time.monotonic() - begun > LENGTH_S:
            running.ask_to_stop()

    running.serve(look)
    over.set()
    feeder.join()
    running.raise_if_stopped_for_good()
    home = running.home
    found: dict[str, list[tuple[float, int]]] = {}
    for name in "rows", "slow":
        log = [c for c in commits(home.table(name)) if c.is_batch and c.facts is not None]
        found[name] = [
            (round(c.at.timestamp() - wall, 2), c.facts.rows) for c in reversed(log) if c.facts
        ]
    return {"bound": bound, **found, **judged(found["rows"], found["slow"])}


def judged(landed: list[tuple[float, int]], read: list[tuple[float, int]]) -> dict[str, Any]:
    """Say how many batches were too long after the burst, and when nothing was behind."""
    took = [rows / CAPACITY for _, rows in read]
    above = [n for n, length in enumerate(took) if length > TARGET_S * 1.5 and read[n][0] > QUIET_S]
    behind, sum_read, drained_s = list[tuple[float, int]](), 0, None
    for at, rows in read:
        sum_read += rows
        waiting = sum(n for when, n in landed if when <= at) - sum_read
        behind.append((at, waiting))
        if at > QUIET_S + BURST_S and waiting <= CAPACITY * TARGET_S and drained_s is None:
            drained_s = at
    return {
        "batches": len(read),
        "longest_s": round(max(took), 2),
        "above_target": len(above),
        "most_behind": max(waiting for _, waiting in behind),
        "drained_after_s": drained_s and round(drained_s - QUIET_S - BURST_S, 1),
        "behind": behind,
    }


def main() -> None:
    """Run it with back-pressure and without."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bound")
    parser.add_argument("--json", type=Path, default=RESULTS)
    typed = parser.parse_args()
    if typed.bound:
        with tempfile.TemporaryDirectory() as place:
            typed.json.write_text(json.dumps(one(Path(place), typed.bound)))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, bound in ("bounded", f"{TARGET_S:g} seconds"), ("all", "all"):
        with tempfile.TemporaryDirectory() as folder:
            into = Path(folder) / "found.json"
            words = ["--bound", bound, "--json", str(into)]
            subprocess.run([sys.executable, "-m", "bench.burst", *words], check=True)
            results[name] = json.loads(into.read_text())
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
