"""1,000 random changes into an update table: merged, and deleted where they are.

The same batches go, in turn, into tables of 100,000 and of 10 million keys. A table is measured
again and again while the share of deleted rows grows to that at which maintenance rewrites a file;
in between, large batches that are not measured delete rows. What maintenance writes is divided by
the batches after which it is due. Needs no JVM, two cores and 12 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.lake.compaction import SIZES, compact, plan
from millstream.lake.delta import FencedTable
from millstream.lake.files import DataFile
from millstream.lake.home import Home
from millstream.lake.log import Facts
from millstream.sql.duckdb_query import DuckDBEngine
from millstream.sql.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
CHANGES, BATCHES, READS = 1_000, 12, 5
FILE_ROWS = 1_000_000
DELETED = (0.0, 0.05, 0.1, 0.15, 0.2)
ROW = """
  md5('key' || {key}) AS user, uuid()::VARCHAR AS session, uuid()::VARCHAR AS item,
  uuid()::VARCHAR AS cart, (random() * 1e6)::BIGINT AS visits, round(random() * 1e5, 2) AS spent,
  90 - 180 * random() AS latitude, 180 - 360 * random() AS longitude,
  make_timestamptz((1.7e15 + random() * 3e13)::BIGINT) AS seen
"""
READING = {
    "one key": "SELECT * FROM {} WHERE user = 'nobody'",
    "all columns": "SELECT max(user), max(session), max(item), max(cart), sum(visits), sum(spent), "
    "max(latitude), max(longitude), max(seen) FROM {}",
    "grouped": "SELECT visits % 100 AS g, count(*) AS n, sum(spent) AS s, max(seen) AS m FROM {} "
    "GROUP BY visits % 100",
    "one column": "SELECT sum(visits) FROM {}",
}


@dataclass
class Place:
    """One table, and what batches into it cost."""

    home: Home
    name: str
    keys: int
    rows: duckdb.DuckDBPyConnection
    batch: int = 0
    table: FencedTable = field(init=False)

    def fill(self) -> None:
        """Make the table with one row for each key, in files that are not small."""
        first = self.staged(range(min(self.keys, FILE_ROWS)))
        schema = pa.schema(first.metadata.schema.to_arrow_schema())
        FencedTable.create(
            self.home.table(self.name),
            schema=_spark_schema(schema),
            properties={"delta.enableChangeDataFeed": "true"},
        )
        self.table = FencedTable(self.home.table(self.name), name=self.name, epoch=1)
        for begin in range(0, self.keys, FILE_ROWS):
            file = self.staged(range(begin, min(begin + FILE_ROWS, self.keys)))
            self.table.append([file], Facts("q", batch=self.batch))
            self.batch += 1

    def staged(self, keys: Any) -> DataFile:
        """Write a row for each key, as a batch is staged."""
        path = self.home.path / f"{self.name}.parquet"
        self.rows.register("keys", pa.table({"key": pa.array(keys, pa.int64())}))
        rows = self.rows.sql(f"SELECT {ROW.format(key='key')} FROM keys").to_arrow_table()
        pq.write_table(rows, path, compression="zstd", row_group_size=500_000)
        return DataFile.read(path, {})

    def upsert(self, file: DataFile) -> None:
        """Write a batch."""
        self.table.upsert([file], ["user"], Facts("q", batch=self.batch))
        self.batch += 1

    def on_disk(self) -> int:
        """Add up all bytes, those of earlier versions too: what was ever written is still there."""
        return sum(f.stat().st_size for f in self.table.path.rglob("*") if f.is_file())


@dataclass
class Cost:
    """What batches cost in the median."""

    wall_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)

    def measure(self, place: Place, file: DataFile) -> None:
        """Write one batch, and note what it cost."""
        before, size = place.on_disk(), file.path.stat().st_size
        wall, processor = time.perf_counter(), time.process_time()
        place.upsert(file)
        self.processor_s.append(time.process_time() - processor)
        self.wall_s.append(time.perf_counter() - wall)
        self.written.append(place.on_disk() - before)
        self.changed.append(size)

    def report(self) -> dict[str, float]:
        """Round the medians."""
        return {
            "wall, s": round(statistics.median(self.wall_s), 3),
            "processor, s": round(statistics.median(self.processor_s), 3),
            "written, KB": round(statistics.mean(self.written) / 1e3),
            "written, times the changed rows": round(sum(self.written) / sum(self.changed), 1),
        }


def batches(place: Place, number: int, changes: int = CHANGES) -> Iterator[DataFile]:
    """Stage rows of random keys, batch by batch."""
    for _ in range(number):
        dice = np.random.default_rng(place.batch)
        yield place.staged(dice.choice(place.keys, changes, replace=False))


def in_turn(places: dict[str, Place], number: int) -> dict[str, Cost]:
    """Write the same number of batches into each table, in turn: all meet the same load."""
    costs = {name: Cost() for name in places}
    for _ in range(number):
        for name, place in places.items():
            [file] = batches(place, 1)
            costs[name].measure(place, file)
    return costs


def delete_until(place: Place, share: float) -> None:
    """Update rows until such a share of the rows in the first files is deleted."""
    large = [file for file in place.table.stored() if file.rows > place.keys / 20]
    rows = sum(file.rows for file in large)
    missing = round(share * rows) - sum(file.deleted for file in large)
    if missing > 0:
        [file] = batches(place, 1, missing)
        place.upsert(file)


def join_small_files(place: Place) -> None:
    """Do the part of maintenance that is due every 16 batches."""
    staging = place.home.path / "staging"
    staging.mkdir(exist_ok=True)
    for group in plan(place.table.stored()):
        if len(group) > 1:
            compact(place.table, group, staging)


def maintain(place: Place) -> dict[str, float]:
    """Do what maintenance does to files in which many rows are deleted."""
    staging = place.home.path / "staging"
    staging.mkdir(exist_ok=True)
    begun, processor, before = time.perf_counter(), time.process_time(), place.on_disk()
    files = 0
    for group in plan(place.table.stored()):
        files += compact(place.table, group, staging).before
    return {
        "files": files,
        "wall, s": round(time.perf_counter() - begun, 1),
        "processor, s": round(time.process_time() - processor, 1),
        "written": place.on_disk() - before,
    }


def reading(home: Home, tables: list[str]) -> dict[str, dict[str, float]]:
    """Time questions to each table, in turn."""
    engine, found = DuckDBEngine(home, Limits(memory_mb=4096)), dict[str, dict[str, float]]()
    for what, text in READING.items():
        taken: dict[str, list[float]] = {table: [] for table in tables}
        for _ in range(READS):
            for table in tables:
                processor = time.process_time()
                engine.run(text.format(table), lambda answer: list(answer.batches()))
                taken[table].append(time.process_time() - processor)
        found[what] = {table: round(min(times), 3) for table, times in taken.items()}
    return found


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--place", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="millstream-bench-", dir=options.place))
    try:
        report = measured(folder, options.keys)
    finally:
        shutil.rmtree(folder)
    if options.keys == 10_000_000:
        (HERE / "results" / "update.json").write_text(json.dumps(report, indent=2) + "\n")


def measured(folder: Path, keys: int) -> dict[str, Any]:
    """Measure tables of a small and of a large number of keys."""
    home = Home.at(folder / "home")
    home.prepare("bench", sources=[])
    report: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "keys": keys}
    with closing(duckdb.connect(config={"threads": 1})) as rows:
        rows.execute("SET TimeZone = 'UTC'")
        small, large = (Place(home, f"keys{n}", n, rows) for n in (100_000, keys))
        for place in (small, large):
            place.fill()
        note(report, "row, bytes", round(large.on_disk() / keys, 1))
        merged = in_turn({str(p.keys): p for p in (small, large)}, 2)
        note(report, "merged", {name: cost.report() for name, cost in merged.items()})
        for place in (small, large):
            begun = time.process_time()
            place.table.prepare(["user"])
            place.table.delete_in_place(["user"])
            note(report, f"prepared {place.keys}, processor s", round(time.process_time() - begun))
        # The first batch of a driver reads the indexes.
        in_turn({str(p.keys): p for p in (small, large)}, 1)
        per_batch: list[float] = []
        changed = 0.0
        for share in DELETED:
            delete_until(large, share)
            for place in (small, large):
                join_small_files(place)
            costs = in_turn({str(p.keys): p for p in (small, large)}, BATCHES)
            note(report, f"deleted {share:.0%}", {n: c.report() for n, c in costs.items()})
            per_batch.append(statistics.mean(costs[str(keys)].written))
            changed = statistics.mean(costs[str(keys)].changed)
        compacted = Place(home, "compacted", keys, rows)
        compacted.fill()
        both = [large.name, compacted.name]
        note(report, "read with a fifth deleted, processor s", reading(home, both))
        amortised(report, large, statistics.mean(per_batch), changed)
        note(report, "read after maintenance, processor s", reading(home, both))
    return report


def amortised(report: dict[str, Any], large: Place, per_batch: float, changed: float) -> None:
    """Add up what a batch writes with the maintenance that it makes necessary."""
    # Files that are rewritten: those of the first rows, after so many batches as have deleted them.
    done = maintain(large)
    due = DELETED[-1] * large.keys / CHANGES
    # A row is in a small file, in one of 16, and in one of 16 of those before it is in a large one.
    tiers = len(SIZES.tiers) * changed
    total = per_batch + done["written"] / due + tiers
    note(
        report,
        "amortised",
        {
            "batch, KB": round(per_batch / 1e3),
            "files in which a fifth is deleted, KB": round(done["written"] / due / 1e3),
            "small files, KB": round(tiers / 1e3),
            "changed rows, KB": round(changed / 1e3),
            "written, times the changed rows": round(total / changed, 1),
            "maintenance": done,
        },
    )


def note(report: dict[str, Any], what: str, found: Any) -> None:
    """Add a figure to the report, and show it."""
    report[what] = found
    print(what, json.dumps(found), flush=True)


def _spark_schema(schema: pa.Schema) -> str:
    kinds = {
        pa.string(): "string",
        pa.int64(): "long",
        pa.float64(): "double",
        pa.timestamp("us", tz="UTC"): "timestamp",
    }
    fields = [
        {"name": f.name, "type": kinds[f.type], "nullable": True, "metadata": {}} for f in schema
    ]
    return json.dumps({"type": "struct", "fields": fields})


if __name__ == "__main__":
    main()
