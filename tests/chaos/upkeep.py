"""Maintenance under fire: drivers of a home are killed at its named points, again and again.

A driver writes batches as fast as it can, without Spark: into a landing table, by key into a table
with a change feed, and by a stream that reads the first and logs its offsets as Spark does. Beside
them it compacts and deletes old versions. An app of another home reads the table too, now and then.
After each kill everything is read: nothing may be lost, doubled, or cut off.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.document import table as markdown, write_between_marks
from tests.graphs import AT
from tests.harness import HarnessError

import millstream as ms
from millstream.checkpoint import CheckpointLog
from millstream.crash import MAINTENANCE_POINTS, VARIABLE
from millstream.lake.compaction import FileSizes
from millstream.lake.durable import write_durably
from millstream.lake.enforce import TableShape, open_table
from millstream.lake.files import DataFile
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.lake.log import Facts, commit_path, facts_of, files_added, first_version, versions
from millstream.lake.maintenance import read_maintained
from millstream.lake.rows import read_rows
from millstream.lake.stored import stored_files
from millstream.model.schema import Schema
from millstream.upkeep.maintain import BackgroundUpkeep, Upkeep, UpkeepOptions

if TYPE_CHECKING:
    from millstream.lake.delta import FencedTable

OFTEN = {"delta.checkpointInterval": "5"}
SCHEMA = Schema.parse("k BIGINT, n BIGINT").to_json()
KEYS, BATCHES, STRUCK_WITHIN_S, ENDS_WITHIN_S = 5, 24, 60, 120
POINTS = (*MAINTENANCE_POINTS, "files_moved", "deletions_written", "table_taken")
_LATEST_START = 9
READ_BY_OTHER = 0.5
"""How often the other app reads on between two kills."""


def app(home: Path) -> ms.App:
    """Declare what the driver writes."""
    made = ms.App("fire", home=home, keep_versions="0 seconds")
    made.source(name="orders")(lambda: ms.Files("nowhere", schema="k BIGINT, n BIGINT"))
    made.sql("copied", "SELECT * FROM orders")
    made.sql("newest", "SELECT * FROM orders", mode="update", key="k")
    return made


def rows_of(batch: int) -> list[dict[str, int]]:
    """Make the rows of a batch; every fifth has none."""
    return [{"k": n % KEYS, "n": n} for n in (2 * batch, 2 * batch + 1)] if batch % 5 else []


def opened(home: Home, name: str, epoch: int, **properties: str) -> FencedTable:
    shape = TableShape(name, SCHEMA, AT, properties={**OFTEN, **properties})
    return open_table(home.table(name), shape, epoch=epoch)


def staged(home: Home, name: str, rows: list[dict[str, int]]) -> list[DataFile]:
    folder = home.staging(name)
    folder.mkdir(parents=True, exist_ok=True)
    if not rows:
        return []
    file = folder / "part.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    return [DataFile.read(file, {})]


@dataclass
class Stream:
    """A reader that logs its offsets, does its batch, and logs that it is done, as Spark does."""

    home: Home
    name: str
    source: Path

    def batch(self, take: Any) -> bool:
        """Read one batch, or the one that was begun; return whether there was any."""
        log = CheckpointLog(self.home.checkpoint(self.name))
        begun = log.planned > log.committed
        number = log.planned if begun else log.committed + 1
        before = log.offsets(number - 1).versions if number else {}
        table = DeltaTable(str(self.source))
        id_ = str(table.metadata().id)
        if not begun:
            end = {"reservoirId": id_, "reservoirVersion": table.version() + 1, "index": -1}
            self._write(log, "metadata", json.dumps({"id": self.name}))
            text = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0})
            self._write(log, f"offsets/{number}", f"v1\n{text}\n{json.dumps(end)}")
        last, until = before.get(id_, -1), log.offsets(number).versions[id_]
        if until == last and not begun:
            return False
        take(number, list(self._rows(last, until)))
        self._write(log, f"commits/{number}", 'v1\n{"nextBatchWatermarkMs":0}')
        return True

    def _rows(self, last: int, until: int) -> Any:
        if last < 0 and not commit_path(self.source, 0).exists():
            table = DeltaTable(str(self.source), version=until)
            files = [self.source / file.path for file in stored_files(table)]
        else:
            found = [files_added(self.source, number) for number in range(last + 1, until + 1)]
            if None in found:
                message = f"{self.name} is cut off: a version from {last + 1} to {until} is gone"
                raise HarnessError(message)
            files = [file for added in found for file in added or ()]
        for file in files:
            yield from pq.ParquetFile(file).read().to_pylist()

    def _write(self, log: CheckpointLog, name: str, text: str) -> None:
        (log.path / name).parent.mkdir(parents=True, exist_ok=True)
        write_durably(log.path / name, text)


def drive(place: str, after: int) -> None:
    """Be a driver until it is killed; begin to maintain after some batches."""
    home = Home.at(place)
    home.prepare("fire", sources=["orders"])
    with Lease.acquire(home) as lease:
        orders = opened(home, "orders", lease.epoch)
        copied = opened(home, "copied", lease.epoch)
        newest = opened(home, "newest", lease.epoch, **{"delta.enableChangeDataFeed": "true"})
        sizes = FileSizes(together=3, merged=0)
        options = UpkeepOptions(sizes=sizes, cut_at_least=1, look_every_s=0.01)
        background = BackgroundUpkeep(Upkeep(app(home.path).graph, lease, (), options), home)

        def copy(number: int, rows: list[dict[str, int]]) -> None:
            copied.append(staged(home, "copied", rows), Facts("copied", batch=number))

        begin = orders.facts.batch + 1
        until = time.monotonic() + (STRUCK_WITHIN_S if os.environ.get(VARIABLE) else 0)
        for batch in itertools.count(begin):
            if batch >= begin + BATCHES and time.monotonic() > until:
                break
            if batch == begin + after:
                background.start()
            rows = rows_of(batch)
            newest.upsert(staged(home, "newest", rows), ["k"], Facts("q", batch=batch))
            orders.append(staged(home, "orders", rows), Facts("q", batch=batch))
            Stream(home, "copied", home.table("orders")).batch(copy)
        background.close()


@dataclass
class Result:
    """What was seen."""

    kills: int = 0
    struck: int = 0
    batches: int = 0
    rows: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    cut_off: int = 0
    compacted: int = 0
    deleted: int = 0
    by_point: dict[str, int] = field(default_factory=dict)


class Fire:
    """A home whose drivers are killed one after another."""

    def __init__(self, place: Path, seed: int) -> None:
        self.home, self.other = Home.at(place / "home"), Home.at(place / "other")
        self.dice, self.result = random.Random(seed), Result()
        self.read = Counter[int]()
        self._log = place / "log"

    def kill(self, point: str) -> None:
        """Run a driver until it dies at a point, and look at what it leaves."""
        environment = os.environ | {VARIABLE: point}
        with self._log.open("wb") as log:
            after = str(self.dice.randint(0, _LATEST_START))
            drive = ["--drive", str(self.home.path), "--after", after]
            command = [sys.executable, "-m", "tests.chaos.upkeep", *drive]
            driver = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        if driver.wait(ENDS_WITHIN_S) > 0:
            raise HarnessError(self._log.read_text()[-2000:])
        self.result.kills += 1
        self.result.struck += driver.returncode < 0
        struck = self.result.by_point.get(point, 0) + (driver.returncode < 0)
        self.result.by_point[point] = struck
        self.look()

    def look(self) -> None:
        """Compare every table, kept version and reader with what was written."""
        if self.dice.random() < READ_BY_OTHER:
            self.read_on()
        done = facts_of(self.home.table("orders")).batch
        expected = Counter(row["n"] for b in range(done + 1) for row in rows_of(b))
        self._compare(Counter(self._numbers("orders")), expected)
        newest = {n % KEYS: n for n in sorted(expected)}
        # It is one batch ahead at most.
        ahead = {**newest, **{row["k"]: row["n"] for row in rows_of(done + 1)}}
        found = {row["k"]: row["n"] for row in self._rows("newest")}
        self.result.wrong += found not in (newest, ahead)
        table = self.home.table("orders")
        for version in range(first_version(table), versions(table).stop):
            then = facts_of(table, version=version).batch
            rows = sum(len(rows_of(b)) for b in range(then + 1))
            read = DeltaTable(str(table), version=version).to_pyarrow_table().num_rows
            self.result.wrong += read != rows
        self.result.batches, self.result.rows = done + 1, sum(expected.values())
        kept = [read_maintained(self.home, name) for name in self.home.tables]
        self.result.compacted = sum(each.compacted for each in kept)
        self.result.deleted = sum(each.deleted for each in kept)

    def read_on(self) -> None:
        """Let the other app read what is there."""
        self.other.prepare("other", sources=["orders"])
        ms.Table(self.home.path, "orders").register("orders", self.other.path, AT)

        def take(number: int, rows: list[dict[str, int]]) -> None:
            self.read.update(row["n"] for row in rows)

        try:
            Stream(self.other, "orders", self.home.table("orders")).batch(take)
        except HarnessError:
            self.result.cut_off += 1

    def finish(self) -> Result:
        """Let a last driver end by itself, and every reader read all that is there."""
        self.kill("")
        self.read_on()
        expected = Counter(self._numbers("orders"))
        self._compare(self.read, expected)
        self._compare(Counter(self._numbers("copied")), expected)
        return self.result

    def _compare(self, found: Counter[int], expected: Counter[int]) -> None:
        self.result.lost += sum((expected - found).values())
        self.result.duplicated += sum((found - expected).values())

    def _numbers(self, name: str) -> list[int]:
        return [row["n"] for row in self._rows(name)]

    def _rows(self, name: str) -> list[dict[str, int]]:
        rows = read_rows(self.home.table(name)).to_pylist()
        return [{key: int(value or 0) for key, value in row.items()} for row in rows]


def fire(place: Path, *, kills: int, seed: int) -> Result:
    """Kill drivers at every point in turn."""
    burning = Fire(place, seed)
    for number in range(kills):
        burning.kill(POINTS[number % len(POINTS)])
    return burning.finish()


def main() -> None:
    """Run it, and write the result down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drive", metavar="HOME")
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--document", type=Path)
    typed = parser.parse_args()
    if typed.drive:
        drive(typed.drive, typed.after)
        return
    with tempfile.TemporaryDirectory() as place:
        result = fire(Path(place), kills=typed.kills, seed=typed.seed)
    found = asdict(result)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    if typed.json:
        typed.json.write_text(json.dumps({"seed": typed.seed, **found}, indent=1) + "\n")
    if typed.document:
        heads = ["kills", "struck", "batches", "rows", "files compacted", "files deleted"]
        heads += ["lost", "duplicated", "wrong", "cut off"]
        names = ["kills", "struck", "batches", "rows", "compacted", "deleted"]
        names += ["lost", "duplicated", "wrong", "cut_off"]
        row = [f"{found[name]:,}" for name in names]
        today = f"{datetime.now(UTC):%Y-%m-%d}, seed {typed.seed}:"
        text = "\n".join([today, "", *markdown(heads, [row])])
        write_between_marks(typed.document, "upkeep", text)
    sys.exit(bool(result.lost or result.duplicated or result.wrong or result.cut_off))


if __name__ == "__main__":
    main()
