from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.faults import raises

import millstream as ms
from millstream.errors import fault
from millstream.lake.delta import FencedTable
from millstream.lake.files import DataFile
from millstream.lake.log import Facts
from millstream.testing.contract import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    NOTHING,
    DrivenStore,
    Report,
    check_sink,
    check_source,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession


class Fenced:
    """SQLite, as it should be done: rows, batch and epoch in one transaction."""

    def __init__(self, path: Path) -> None:
        self._store, self._epoch = sqlite3.connect(path, isolation_level=None), 0
        self._store.execute("CREATE TABLE IF NOT EXISTS rows (id INT, text TEXT)")
        self._store.execute("CREATE TABLE IF NOT EXISTS fence (epoch INT, batch INT)")

    def open(self, epoch: int) -> int:
        self._epoch = epoch
        with self._store:
            self._store.execute("BEGIN IMMEDIATE")
            batch = self._fence()[1]
            self._set(batch)
        return batch

    def write(self, batch: int, rows: Iterable[Mapping[str, Any]]) -> None:
        with self._store:
            self._store.execute("BEGIN IMMEDIATE")
            epoch, last = self._fence()
            if epoch > self._epoch:
                raise fault("OVERTAKEN", theirs=epoch, mine=self._epoch, table="rows")
            if last >= batch:
                return
            for row in rows:
                self._store.execute("INSERT INTO rows VALUES (?, ?)", (row["id"], row["text"]))
            self._set(batch)

    def read(self) -> list[dict[str, Any]]:
        found = self._store.execute("SELECT id, text FROM rows").fetchall()
        return [{"id": number, "text": text} for number, text in found]

    def _fence(self) -> tuple[int, int]:
        found = self._store.execute("SELECT epoch, batch FROM fence").fetchone()
        return found or (0, -1)

    def _set(self, batch: int) -> None:
        self._store.execute("DELETE FROM fence")
        self._store.execute("INSERT INTO fence VALUES (?, ?)", (self._epoch, batch))


class Careless:
    """A file that rows are appended to: it does not look at the batch."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def open(self, epoch: int) -> int:
        return -1

    def write(self, batch: int, rows: Iterable[Mapping[str, Any]]) -> None:
        with self._path.open("a") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]


class Forgetful(Careless):
    """It overwrites what it had."""

    def write(self, batch: int, rows: Iterable[Mapping[str, Any]]) -> None:
        self._path.write_text("")
        super().write(batch, rows)


class Delta:
    """The product's own table, driven by hand."""

    def __init__(self, path: Path) -> None:
        self._path = path
        fields = [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "text", "type": "string", "nullable": True, "metadata": {}},
        ]
        FencedTable.create(path, schema=json.dumps({"type": "struct", "fields": fields}))
        self._table: FencedTable | None = None

    def open(self, epoch: int) -> int:
        self._table = FencedTable(self._path, name="rows", epoch=epoch)
        self._table.take()
        return self._table.facts.batch

    def write(self, batch: int, rows: Iterable[Mapping[str, Any]]) -> None:
        assert self._table is not None
        staged = self._path.parent / f"{batch}.parquet"
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), staged)
        if self._table.facts.batch < batch:
            file = DataFile.read(staged, {})
            self._table.append([file], Facts(query_id="q", batch=batch, rows=file.rows))

    def read(self) -> list[dict[str, Any]]:
        from deltalake import DeltaTable

        return [dict(row) for row in DeltaTable(str(self._path)).to_pyarrow_table().to_pylist()]


def report(kind: Callable[[Any], DrivenStore], place: Path) -> Report:
    def connect(name: str) -> DrivenStore:
        (place / name).mkdir(exist_ok=True)
        return kind(place / name / "store")

    return check_sink(connect)


def failed(found: Report) -> set[str]:
    return {trial.name for trial in found.trials if not trial.is_passed}


@pytest.mark.parametrize("kind", [Fenced, Delta])
def test_a_sink_with_rows_batch_and_epoch_in_one_transaction_may_promise_exactly_once(
    kind: Callable[[Any], DrivenStore], tmp_path: Path
) -> None:
    found = report(kind, tmp_path)

    found.assert_guarantee(EXACTLY_ONCE)
    assert "refused with OvertakenError" in str(found)


def test_a_sink_that_ignores_the_batch_may_promise_at_least_once(tmp_path: Path) -> None:
    found = report(Careless, tmp_path)

    assert found.guarantee == AT_LEAST_ONCE
    assert failed(found) == {
        "a new driver gets the last batch",
        "crash during the write, then a retry",
        "crash after the write, then a retry",
        "retry with the same batch",
        "replay with different content",
        "a driver that was overtaken writes nothing",
    }
    with raises("CONTRACT_BROKEN", match="may promise at least once"):
        found.assert_guarantee(EXACTLY_ONCE)


def test_a_sink_that_loses_rows_may_promise_nothing(tmp_path: Path) -> None:
    found = report(Forgetful, tmp_path)

    assert found.guarantee == NOTHING
    with raises("CONTRACT_BROKEN"):
        found.assert_guarantee(AT_LEAST_ONCE)


@pytest.mark.spark
def test_a_folder_of_files_may_promise_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def feed() -> int:
        number = len(list((tmp_path / "in").iterdir()))
        file = tmp_path / f"{number}.json"
        file.write_text("".join(f'{{"n": {n}}}\n' for n in range(3)))
        file.rename(tmp_path / "in" / file.name)
        return 3

    check_source(ms.Files(str(tmp_path / "in"), schema="n BIGINT"), feed, spark).assert_guarantee()


@pytest.mark.spark
def test_a_source_that_gives_fewer_records_than_it_was_fed_may_promise_nothing(
    spark: SparkSession,
) -> None:
    memory = ms.Memory("n BIGINT")

    def feed() -> int:
        memory.add({"n": 1})
        return 2

    assert check_source(memory, feed, spark).guarantee == NOTHING
