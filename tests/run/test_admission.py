"""How much each batch reads, in running applications."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from deltalake.exceptions import CommitFailedError
from pyspark.sql import functions as F
from tests.apps import READING, app_of, at, reading, run, timed

import millstream as ms
from millstream.lake.compaction import FileSizes, compact, plan
from millstream.lake.delta import FencedTable
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.lake.log import commit_path, commits
from millstream.lake.retention import cut
from millstream.lake.stored import stored_files
from millstream.lake.table import TableSink
from millstream.run import admission
from millstream.run.supervise import Restart
from millstream.systems.memory.source import Memory
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.app import App
    from millstream.testing.kafka import Broker, Topics

pytestmark = pytest.mark.spark

SIZES = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3)


def landed(home: Path, bound: str) -> tuple[App, Memory]:
    """Land a batch of each size; the table of the app has not read any yet."""
    source = Memory(READING)
    app = timed(source)
    app.sql("clean", "SELECT id, at FROM readings", batch=bound)
    for batch, size in enumerate(SIZES):
        source.add(*(reading(10 * batch + n, "12:00:00") for n in range(size)))
    run(app, home, select=["readings"])
    return app, source


def rows_of_batches(home: Path, name: str) -> list[int]:
    """Read from the log how many rows each batch has read, the first one first."""
    found = [c.facts for c in commits(home / "tables" / name) if c.is_batch and c.facts]
    return [facts.counts["input"] for facts in found[::-1]]


def test_a_batch_reads_whole_batches_of_its_input_up_to_its_bound(
    spark: SparkSession, tmp_path: Path
) -> None:
    app, source = landed(tmp_path, "8 rows")
    run(app, tmp_path, select=["clean"])

    assert rows_of_batches(tmp_path, "readings") == list(SIZES)
    assert rows_of_batches(tmp_path, "clean") == [8, 6, 9, 8, 8]

    # A later run bounds its first batch from where the checkpoint ends.
    for number in range(3):
        source.add(*(reading(1000 + 10 * number + n, "12:00:00") for n in range(5)))
    run(app, tmp_path, select=["readings"])
    run(app, tmp_path, select=["clean"])
    assert rows_of_batches(tmp_path, "clean")[5:] == [5, 5, 5]


def cut_off(home: Path, name: str, *, together: int = 99) -> None:
    """Compact a table, write a checkpoint of it and delete the log before."""
    with Lease.acquire(Home.at(home)) as lease:
        table = FencedTable(home / "tables" / name, name=name, epoch=lease.epoch)
        (home / "aside").mkdir()
        for group in plan(stored_files(table.snapshot()), FileSizes(together=together)):
            compact(table, group[: len(group) - 2], home / "aside")
        table.publish(table.facts)
        table.checkpoint()
        cut(table, table.version)
    assert not commit_path(home / "tables" / name, 0).exists()


@pytest.mark.parametrize(("together", "read"), [(99, [8, 6, 9, 8, 8]), (4, [36, 3])])
def test_a_new_table_over_a_log_that_was_cut_reads_whole_batches_too(
    spark: SparkSession, tmp_path: Path, together: int, read: list[int]
) -> None:
    app, source = landed(tmp_path, "8 rows")
    source.add(*(reading(1000 + n, None if n % 2 else "12:00:00") for n in range(6)))
    run(app, tmp_path, select=["readings"])
    cut_off(tmp_path, "readings", together=together)
    run(app, tmp_path, select=["clean"])

    assert rows_of_batches(tmp_path, "clean") == [*read, 3]
    source.add(reading(2000, "12:00:00"))
    run(app, tmp_path)
    assert rows_of_batches(tmp_path, "clean") == [*read, 3, 1]


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_table_of_another_app_is_read_in_bounded_batches(
    spark: SparkSession, tmp_path: Path, is_cut: bool
) -> None:
    app, source = landed(tmp_path / "home", "all")
    if is_cut:
        cut_off(tmp_path / "home", "readings")
    other = ms.App("other", batch="8 rows")
    other.source(name="theirs")(lambda: ms.Table(str(tmp_path / "home"), "readings"))
    run(other, tmp_path / "other")

    assert rows_of_batches(tmp_path / "other", "theirs") == [8, 6, 9, 8, 8]
    for number in range(3):
        source.add(*(reading(1000 + 10 * number + n, "12:00:00") for n in range(5)))
    run(app, tmp_path / "home", select=["readings"])
    run(other, tmp_path / "other")
    assert rows_of_batches(tmp_path / "other", "theirs")[5:] == [5, 5, 5]


def test_all_is_read_at_once_if_nothing_bounds_it(spark: SparkSession, tmp_path: Path) -> None:
    app, _ = landed(tmp_path, "all")
    run(app, tmp_path, select=["clean"])

    assert rows_of_batches(tmp_path, "clean") == [sum(SIZES)]


def test_a_restarted_query_goes_on_in_whole_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = landed(tmp_path, "8 rows")
    commit, failures = TableSink.commit, [1, 2]

    def failing(self: TableSink, staged: Any, batch: int, query_id: str) -> None:
        if batch in failures:
            failures.remove(batch)
            raise CommitFailedError
        commit(self, staged, batch, query_id)

    monkeypatch.setattr(TableSink, "commit", failing)
    monkeypatch.setattr(
        "millstream.run.application.DEFAULT", Restart(attempts=3, first_pause_s=0.01)
    )
    app.run(home=tmp_path, once=True, select=["clean"])

    assert failures == []
    assert rows_of_batches(tmp_path, "clean") == [8, 6, 9, 8, 8]


def test_a_batch_that_takes_longer_than_its_target_is_followed_by_smaller_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_core = 18 // spark.sparkContext.defaultParallelism
    monkeypatch.setattr(admission, "_FIRST", {"rows": of_core, "bytes": 1})
    app, _ = landed(tmp_path, "1 ms")
    run(app, tmp_path, select=["clean"])

    # The first size is a guess, and no batch takes a thousandth of a second: one landed batch
    # is then the least that can be read.
    assert rows_of_batches(tmp_path, "clean") == [14, 9, 2, 6, 5, 3]


def test_windows_and_joins_over_bounded_batches_equal_the_batch(spark: SparkSession) -> None:
    app = ms.App("fleet", batch="4 rows")
    schema = "id BIGINT, at TIMESTAMP"

    @app.source(event_time="at", watermark="30 seconds")
    def left() -> ms.Memory:
        return ms.Memory(schema)

    @app.source(event_time="at", watermark="30 seconds")
    def right() -> ms.Memory:
        return ms.Memory(schema)

    @app.table
    def per_minute(left: DataFrame) -> DataFrame:
        return left.groupBy(F.window("at", "1 minute")).count()

    @app.table
    def pairs(left: DataFrame, right: DataFrame) -> DataFrame:
        return ms.join_within(left, right, on=["id"], within="1 minute")

    chance = random.Random(3)
    rows = {
        name: [
            {"id": chance.randrange(4), "at": at(f"12:{n // 6:02d}:{n % 6 * 10:02d}")}
            for n in range(24)
        ]
        for name in ("left", "right")
    }
    assert_prefix_consistent(app, rows, runs=2, spark=spark)


@pytest.mark.kafka
def test_topics_and_folders_are_read_in_bounded_batches(
    spark: SparkSession,
    broker: Broker,
    topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "_FIRST", {"rows": 100_000, "bytes": 1})
    topics.create("bounded", partitions=2)
    topics.send("bounded", *(f'{{"n": {n}}}' for n in range(20)))
    for n in range(4):
        (tmp_path / f"{n}.json").write_text(json.dumps({"n": n}) + "\n")
    (tmp_path / "big.json").write_text('{"n": 9}\n' * 20)
    app = ms.App("shop", batch="1 ms")
    app.source(name="topic", batch="6 rows")(
        lambda: ms.Kafka("bounded", broker.servers, schema="n INT")
    )
    app.source(name="folder")(lambda: ms.Files(str(tmp_path / "*.json"), schema="n INT"))
    run(app, tmp_path / "home")

    assert rows_of_batches(tmp_path / "home", "topic") == [6, 6, 6, 2]
    assert sorted(rows_of_batches(tmp_path / "home", "folder")) == [1, 1, 1, 1, 20]


def test_a_landing_reads_no_more_than_its_slowest_reader_takes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.run.batch_size._LEAST_SHARE", 0)
    files = ms.Files(str(tmp_path / "*.json"), schema="n INT")
    app = app_of(files, batch="1 hour")
    app.sql("clean", "SELECT n FROM readings", batch="1 hour")
    app.sql("cleaner", "SELECT n FROM clean", batch="20 rows")
    folder, home = tmp_path, tmp_path / "home"

    def add(number: int) -> None:
        path = folder / f"{number:03d}"
        path.write_text("".join(f'{{"n": {n}}}\n' for n in range(10)))
        path.rename(path.with_suffix(".json"))

    # What a reader takes is known after its first batch, and goes one query up with each batch.
    add(0)
    parts = [range(1, 2), range(2, 3), range(3, 33)]

    def add_next() -> None:
        has_table = (home / "tables" / "cleaner").exists()
        read = sum(rows_of_batches(home, "cleaner")) if has_table else 0
        if read < 10 * len([*folder.glob("*.json")]):
            return
        if not parts:
            running.ask_to_stop()
            return
        for number in parts.pop(0):
            add(number)

    running = app.open({"home": home})
    running.serve(add_next)
    running.raise_if_stopped_for_good()

    landed = rows_of_batches(home, "readings")
    assert landed[:3] == [10, 10, 10]
    assert sum(landed) == 330
    assert max(landed) == 20


def test_a_limit_of_the_user_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    for n in range(5):
        (tmp_path / f"{n}.json").write_text(json.dumps({"n": n}) + "\n")
    files = ms.Files(str(tmp_path / "*.json"), schema="n INT", options={"maxFilesPerTrigger": 2})
    app = app_of(files)
    run(app, tmp_path / "home")

    assert rows_of_batches(tmp_path / "home", "readings") == [2, 2, 1]
