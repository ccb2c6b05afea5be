"""A burst of ten times as many rows into a slow table, with batches that are bounded and not.

    python -m bench.burst

A folder gets files at half the rate that the table can process, then at ten times that rate for
some seconds, then as before until nothing is left to read. The table waits 1 ms for each row, as
one that asks a service does, so that its capacity does not depend on the machine. The same runs
with `batch="all"`. Writes `bench/results/burst.json` and `burst.svg`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import millstream as ms
from bench.plot import Chart, write_svg
from millstream.observe.history import History

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from millstream.observe.record import BatchRecord
    from millstream.run.application import ApplicationRun

RESULTS = Path(__file__).parent / "results"
TARGET_S, CAPACITY = 5.0, 1_000
BEFORE_S, BURST_S, AFTER_S, MOST_S = 30.0, 20.0, 10.0, 270.0
FILE_EVERY_S = 0.25
SCHEMA = "n BIGINT, user STRING, price DOUBLE"
NEAR = 1.25
"""A batch that takes so many times its target is within it: times vary by themselves."""


def asked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Wait as a service does that is asked for each row."""
    for rows in batches:
        time.sleep(rows.num_rows / CAPACITY)
        yield rows


def app_of(place: Path, bound: str) -> ms.App:
    """Declare a fast landing, and a table that is slower."""
    app = ms.App("burst", home=place / "home", batch=bound)

    @app.source
    def orders() -> ms.Files:
        return ms.Files(str(place / "in"), schema=SCHEMA)

    @app.table
    def priced(orders: DataFrame) -> DataFrame:
        return orders.coalesce(1).mapInArrow(asked, SCHEMA)

    return app


class Writer(threading.Thread):
    """Puts files into a folder at the rate of the moment."""

    def __init__(self, folder: Path, burst_s: float) -> None:
        super().__init__(daemon=True)
        self._folder, self._burst_s = folder, burst_s
        self.rows, self.is_over = 0, threading.Event()
        self.begun = time.monotonic()

    def run(self) -> None:
        number = 1
        while not self.is_over.is_set():
            due_s = number * FILE_EVERY_S
            self.is_over.wait(max(self.begun + due_s - time.monotonic(), 0))
            self.write(number, round(self._rate(due_s) * FILE_EVERY_S))
            number += 1

    def _rate(self, at_s: float) -> float:
        is_burst = BEFORE_S <= at_s < BEFORE_S + self._burst_s
        return CAPACITY / 2 * (10 if is_burst else 1)

    def write(self, number: int, rows: int) -> None:
        """Write one file."""
        first, self.rows = self.rows, self.rows + rows
        path = self._folder / f".{number:06d}"
        path.write_text(
            "".join(
                f'{{"n": {n}, "user": "user-{n % 997}", "price": {n % 100}.5}}\n'
                for n in range(first, first + rows)
            )
        )
        path.rename(self._folder / f"{number:06d}.json")


@dataclass
class Watch:
    """Stops the run when the burst is over and nothing is left to read."""

    running: ApplicationRun
    writer: Writer
    burst_s: float
    drained_s: float | None = None

    def __call__(self) -> None:
        elapsed = time.monotonic() - self.writer.begun
        read = [query.running.facts.totals.get("input", 0) for query in self.running.queries]
        if elapsed > BEFORE_S + self.burst_s and self.drained_s is None:
            waiting = self.writer.rows - min(read)
            # No more than arrives while a batch of the usual size runs.
            self.drained_s = elapsed if waiting < CAPACITY / 2 * TARGET_S else None
        is_settled = self.drained_s is not None and elapsed > self.drained_s + AFTER_S
        if is_settled or elapsed > MOST_S + self.burst_s:
            self.writer.is_over.set()
            self.running.ask_to_stop()


def burst(place: Path, bound: str, burst_s: float) -> dict[str, Any]:
    """Run the app once; return what was seen."""
    (place / "in").mkdir(parents=True)
    writer = Writer(place / "in", burst_s)
    writer.write(0, 1)
    running = app_of(place, bound).open({"master": "local[2]"})
    writer.begun = time.monotonic()
    began = datetime.now(UTC)
    writer.start()
    watch = Watch(running, writer, burst_s)
    running.serve(watch)
    running.raise_if_stopped_for_good()
    writer.join()
    with History.read_only(running.home.history) as history:
        batches = {name: history.batches(name) for name in ("orders", "priced")}
    found = {name: [_point(b, began) for b in records] for name, records in batches.items()}
    return {
        "batch": bound,
        "rows": writer.rows,
        "drained_s": watch.drained_s and round(watch.drained_s - BEFORE_S - burst_s, 1),
        **{name: judged(points) for name, points in found.items()},
        "batches": found,
    }


def _point(batch: BatchRecord, began: datetime) -> dict[str, float]:
    ended, seconds = (batch.at - began).total_seconds(), (batch.duration_ms or 0) / 1000
    return {"at_s": round(ended - seconds, 2), "rows": batch.input, "seconds": round(seconds, 2)}


def judged(batches: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Judge the batches since the burst began."""
    since = [batch for batch in batches if batch["at_s"] >= BEFORE_S]
    above = [n for n, batch in enumerate(since) if batch["seconds"] > TARGET_S * NEAR]
    return {
        "batches": len(batches),
        "longest_s": max((batch["seconds"] for batch in since), default=0),
        "above_target": len(above),
        "from_first_to_last_above": above[-1] - above[0] + 1 if above else 0,
        "turns": _turns([batch["rows"] for batch in since if batch["seconds"] > TARGET_S / 2]),
    }


def _turns(sizes: Iterable[float]) -> int:
    """Count how often full batches grow by more than a quarter and shrink by as much, or back."""
    extreme, direction, turns = 0.0, 0, 0
    for size in sizes:
        grows = 1 if size > extreme * NEAR else -1 if size < extreme / NEAR else 0
        if not extreme or grows:
            turns += bool(direction) and grows == -direction
            direction, extreme = (grows if extreme else 0), size
    return turns


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw how long batches take, and how large they are."""
    charts = []
    for one in found.values():
        for what in ("seconds", "rows"):
            lines = {n: [(b["at_s"], b[what]) for b in one["batches"][n]] for n in one["batches"]}
            limit = TARGET_S if what == "seconds" else None
            charts.append(Chart(f'{what} of each batch, batch="{one["batch"]}"', lines, limit))
    write_svg(path, "A burst of ten times as many rows", charts)


def main() -> None:
    """Run it bounded and unbounded, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=BURST_S, help="of the burst")
    parser.add_argument("--one")
    parser.add_argument("--json", type=Path, default=RESULTS / "burst.json")
    typed = parser.parse_args()
    if typed.one:
        with tempfile.TemporaryDirectory() as place:
            typed.json.write_text(json.dumps(burst(Path(place), typed.one, typed.seconds)))
        return
    found = {}
    for one in (f"{TARGET_S:g} seconds", "all"):
        with tempfile.TemporaryDirectory() as folder:
            into = Path(folder) / "found.json"
            words = ["--one", one, "--seconds", str(typed.seconds), "--json", str(into)]
            subprocess.run([sys.executable, "-m", "bench.burst", *words], check=True)
            found[one] = json.loads(into.read_text())
        print({k: v for k, v in found[one].items() if k != "batches"}, flush=True)
    typed.json.write_text(json.dumps(found, indent=1) + "\n")
    draw(found, typed.json.with_suffix(".svg"))


if __name__ == "__main__":
    main()
