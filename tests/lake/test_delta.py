from __future__ import annotations

import errno
import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.faults import raises
from tests.graphs import AT

from millstream.errors import OvertakenError
from millstream.lake import merge
from millstream.lake.delta import FencedTable
from millstream.lake.enforce import TableShape, open_table
from millstream.lake.files import DataFile
from millstream.lake.home import Home
from millstream.lake.log import Facts, facts_of
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema.parse("k STRING, n BIGINT").to_json()


def files(place: Path, rows: list[tuple[str | None, int]]) -> tuple[DataFile, ...]:
    place.mkdir(parents=True, exist_ok=True)
    names, numbers = [row[0] for row in rows], [row[1] for row in rows]
    columns = {"k": pa.array(names, pa.string()), "n": pa.array(numbers, pa.int64())}
    pq.write_table(pa.table(columns), place / "part.parquet")
    return (DataFile.read(place / "part.parquet", {}),)


def opened(path: Path, epoch: int, **options: Any) -> FencedTable:
    shape = TableShape(name="t", schema=options.pop("schema", SCHEMA), at=AT, **options)
    return open_table(path, shape, epoch=epoch)


def write(table: FencedTable, act: str, staged: tuple[DataFile, ...]) -> None:
    match act:
        case "append":
            table.append(staged, Facts("q", batch=1))
        case "replace":
            table.replace(staged, Facts("q", batch=1))
        case "upsert":
            table.upsert(staged, ["k"], Facts("q", batch=1))
        case _:
            table.take()


def rows_of(path: Path) -> list[tuple[str | None, int]]:
    rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return sorted(((row["k"], row["n"]) for row in rows), key=str)


def test_a_batch_and_its_facts_are_one_commit(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)

    table.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=0, rows=1).plus({"ok": 1}))

    assert rows_of(tmp_path / "t") == [("a", 1)]
    held = facts_of(tmp_path / "t")
    assert (held.query_id, held.epoch, held.batch, held.totals) == ("q", 1, 0, {"ok": 1})


def test_facts_survive_the_commits_of_later_drivers_and_of_others(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)
    table.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=7))
    table.append(files(tmp_path / "s", [("b", 2)]), Facts("q", batch=8))

    DeltaTable(str(tmp_path / "t")).optimize.compact()
    for epoch in (2, 3):
        opened(tmp_path / "t", epoch=epoch)

    assert facts_of(tmp_path / "t").batch == 8


@pytest.mark.parametrize("act", ["append", "replace", "upsert", "take"])
def test_an_overtaken_driver_can_write_nothing(tmp_path: Path, act: str) -> None:
    zombie = opened(tmp_path / "t", epoch=1)
    zombie.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=0))
    opened(tmp_path / "t", epoch=2)
    staged = files(tmp_path / "z", [("zombie", 9)])

    with pytest.raises(OvertakenError) as caught:
        write(zombie, act, staged)

    assert rows_of(tmp_path / "t") == [("a", 1)]
    assert str(caught.value) == (
        "[OVERTAKEN] another driver took over (epoch 2; this one has 1): 't' was not written\n"
        "  fix: none needed: the other driver carries on; this one stops"
    )


@pytest.mark.parametrize("act", ["append", "replace", "upsert"])
def test_a_takeover_between_looking_and_committing_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    zombie = opened(tmp_path / "t", epoch=1)
    zombie.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=0))
    owner: Any = zombie._log if act != "upsert" else merge
    name = "write" if act != "upsert" else "_changes"
    commit = getattr(owner, name)

    def lose_then_commit(*of: Any) -> Any:
        opened(tmp_path / "t", epoch=2)
        return commit(*of)

    monkeypatch.setattr(owner, name, lose_then_commit)
    staged = files(tmp_path / "z", [("zombie", 9)])

    with pytest.raises(OvertakenError):
        write(zombie, act, staged)

    assert rows_of(tmp_path / "t") == [("a", 1)]


def test_someone_elses_compaction_in_between_does_not_stop_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t", epoch=1)
    for batch in range(2):
        table.append(files(tmp_path / "s", [("a", batch)]), Facts("q", batch=batch))
    commit, compacted = table._log.write, list[object]()

    def compact_once(*of: Any) -> None:
        if not compacted:
            compacted.append(DeltaTable(str(tmp_path / "t")).optimize.compact())
        commit(*of)

    monkeypatch.setattr(table._log, "write", compact_once)

    table.append(files(tmp_path / "s", [("a", 2)]), Facts("q", batch=2))

    assert rows_of(tmp_path / "t") == [("a", 0), ("a", 1), ("a", 2)]


def test_an_upsert_updates_by_key_and_null_is_a_key_too(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)
    first: list[tuple[str | None, int]] = [("a", 1), (None, 2)]
    second: list[tuple[str | None, int]] = [("b", 3), (None, 4)]

    table.upsert(files(tmp_path / "s1", first), ["k"], Facts("q", batch=0))
    table.upsert(files(tmp_path / "s2", second), ["k"], Facts("q", batch=1))

    assert rows_of(tmp_path / "t") == [("a", 1), ("b", 3), (None, 4)]


def test_replacing_leaves_nothing_of_what_was(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)
    table.replace(files(tmp_path / "s1", [("a", 1)]), Facts("q", batch=0))

    table.replace(files(tmp_path / "s2", [("b", 2)]), Facts("q", batch=1))

    assert rows_of(tmp_path / "t") == [("b", 2)]
    before = DeltaTable(str(tmp_path / "t"), version=table.version - 1)
    assert before.to_pyarrow_table().column("k").to_pylist() == ["a"]


def test_statistics_of_a_file_bound_its_values(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)

    table.append(files(tmp_path / "s", [("a", 1), ("b", 5), (None, 3)]), Facts("q", batch=0))

    actions = DeltaTable(str(tmp_path / "t")).get_add_actions(flatten=True)
    [added] = pa.table(actions).to_pylist()
    assert (added["num_records"], added["null_count.k"]) == (3, 1)
    assert (added["min.n"], added["max.n"], added["min.k"], added["max.k"]) == (1, 5, "a", "b")


def test_a_change_of_type_is_refused_with_the_column_named(tmp_path: Path) -> None:
    opened(tmp_path / "t", epoch=1)

    with raises("SCHEMA_CHANGED") as caught:
        opened(tmp_path / "t", epoch=2, schema=Schema.parse("k STRING, n STRING").to_json())

    assert str(caught.value) == (
        "[SCHEMA_CHANGED] column 'n' of 't' is LONG in the table and STRING in the answer\n"
        "  at:  app.py:7\n"
        "  fix: cast it back, or give the new column another name (and evolve=True)"
    )


def test_a_change_deep_inside_a_struct_is_refused(tmp_path: Path) -> None:
    deep = "a STRUCT<b: ARRAY<STRUCT<c: INT>>>"
    opened(tmp_path / "t", epoch=1, schema=Schema.parse(deep).to_json())

    changed = Schema.parse(deep.replace("INT", "BIGINT")).to_json()

    with raises("SCHEMA_CHANGED", match="column 'a'"):
        opened(tmp_path / "t", epoch=2, schema=changed)


def test_columns_come_and_go_only_when_asked_for(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)
    table.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=0))
    wider = Schema.parse("k STRING, n BIGINT, more DOUBLE").to_json()
    narrower = Schema.parse("k STRING").to_json()

    with raises("COLUMN_ADDED", match="'more'"):
        opened(tmp_path / "t", epoch=2, schema=wider)
    with raises("COLUMN_DROPPED", match="'n'"):
        opened(tmp_path / "t", epoch=3, schema=narrower)
    opened(tmp_path / "t", epoch=4, schema=wider, evolve=True)
    opened(tmp_path / "t", epoch=5, schema=narrower, evolve=True)

    [row] = DeltaTable(str(tmp_path / "t")).to_pyarrow_table().to_pylist()
    assert row == {"k": "a", "n": 1, "more": None}


def test_another_partitioning_is_refused(tmp_path: Path) -> None:
    opened(tmp_path / "t", epoch=1)

    with raises("LAYOUT_CHANGED", match=r"was made with partition_by=\[\]"):
        opened(tmp_path / "t", epoch=2, partition_by=("k",))


def test_facts_are_written_as_they_are_read(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=3)
    facts = Facts("q", batch=4, rows=5, digest="5:ab", greatest_event_time=6, inputs={"x": 1})

    table.append((), facts)

    assert facts_of(tmp_path / "t") == replace(facts, epoch=3)
    assert json.loads(table.schema)["fields"][0]["name"] == "k"


def test_a_key_can_go_while_a_column_that_is_never_null_is_written(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)
    table.upsert(files(tmp_path / "a", [("a", 1), ("b", 2)]), ["k"], Facts("q", batch=0))
    never_null: list[pa.Field[Any]] = [
        pa.field("k", pa.string()),
        pa.field("n", pa.int64(), nullable=False),
    ]
    rows = pa.table({"k": ["a"], "n": [3]}, pa.schema(never_null))
    pq.write_table(rows, tmp_path / "part.parquet")
    staged = (DataFile.read(tmp_path / "part.parquet", {}),)

    table.upsert(staged, ["k"], Facts("q", batch=1), gone=pa.table({"k": ["b"]}))

    assert rows_of(tmp_path / "t") == [("a", 3)]


@pytest.mark.parametrize("left", [(), ("00000000000000000000.json#1",)])
def test_a_table_whose_first_commit_was_cut_short_is_made_again(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    home = Home.at(tmp_path / "home")
    log = home.table("t") / "_delta_log"
    log.mkdir(parents=True)
    for name in left:
        (log / name).write_text('{"commitInfo":{}}\n')
    assert not home.tables

    table = opened(home.table("t"), epoch=1)
    table.append(files(tmp_path / "staged", [("a", 1)]), Facts("q", batch=0))

    assert home.tables == ("t",)
    assert facts_of(home.table("t")).batch == 0


def test_a_driver_that_takes_over_knows_the_batch_that_was_committed_meanwhile(
    tmp_path: Path,
) -> None:
    early = opened(tmp_path / "t", epoch=1)
    later = FencedTable(tmp_path / "t", name="t", epoch=2)
    assert later.facts.batch == -1
    early.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=0))

    later.take()
    later.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=0))

    assert later.facts.batch == facts_of(tmp_path / "t").batch == 0
    assert rows_of(tmp_path / "t") == [("a", 1)]


def test_a_batch_whose_commit_failed_is_not_taken_for_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t", epoch=1)
    staged = files(tmp_path / "s", [("a", 1)])
    with monkeypatch.context() as patch:
        patch.setattr(table._log, "write", failing)
        with pytest.raises(OSError, match="disk is full"):
            table.append(staged, Facts("q", batch=0))

    assert table.facts.batch == -1
    table.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=0))
    assert (table.facts.batch, rows_of(tmp_path / "t")) == (0, [("a", 1)])


@pytest.mark.parametrize("act", ["append", "replace", "upsert"])
def test_a_batch_whose_commit_was_made_but_not_answered_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    table = opened(tmp_path / "t", epoch=1)
    staged = files(tmp_path / "s", [("first", 1)])
    with monkeypatch.context() as patch:
        patch.setattr(table._log, "_make_durable", failing)
        with pytest.raises(OSError, match="disk is full"):
            write(table, act, staged)

    assert table.facts.batch == 1
    write(table, act, files(tmp_path / "s", [("second", 2)]))
    assert rows_of(tmp_path / "t") == [("first", 1)]


def failing(*_: object) -> None:
    raise OSError(errno.ENOSPC, "the disk is full")


def test_a_file_of_an_overtaken_driver_does_not_replace_one_of_the_driver_after_it(
    tmp_path: Path,
) -> None:
    zombie, later = opened(tmp_path / "t", epoch=1), opened(tmp_path / "t", epoch=2)
    later.append(files(tmp_path / "l", [("later", 2)]), Facts("q", batch=0))

    with pytest.raises(OvertakenError):
        zombie.append(files(tmp_path / "z", [("zombie", 9)]), Facts("q", batch=0))

    assert rows_of(tmp_path / "t") == [("later", 2)]


def test_batches_of_several_queries_in_one_table_are_each_written_once(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)

    for query, first in (("a", 0), ("b", 100), ("a", 200), ("b", 300)):
        staged = files(tmp_path / "s", [(query, 1)])
        table.append(staged, Facts(query, batch=0), number_from=first)

    assert rows_of(tmp_path / "t") == [("a", 1), ("b", 1)]


def test_a_batch_that_changes_no_row_is_recorded(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", epoch=1)
    table.append(files(tmp_path / "s", [("a", 1)]), Facts("q", batch=0))

    table.upsert([], ["k"], Facts("q", batch=1), gone=pa.table({"k": ["not there"]}))

    assert rows_of(tmp_path / "t") == [("a", 1)]
    assert facts_of(tmp_path / "t").batch == 1


def test_the_statistics_of_a_file_hide_no_row(tmp_path: Path) -> None:
    moments = [datetime(2024, 5, 1, 12, 0, 0, us, UTC) for us in (5_999, 1, 2_000)]
    columns = {"at": moments, "n": [3, 1, 2], "x": [1.0, math.nan, 2.0], "s": ["b", None, "a"]}
    pq.write_table(pa.table(columns), tmp_path / "part.parquet", row_group_size=1)

    action = DataFile.read(tmp_path / "part.parquet", {}).move_into(tmp_path, "moved.parquet")

    stats = json.loads(action.stats)
    assert stats["numRecords"] == 3
    assert stats["minValues"] == {"at": "2024-05-01T12:00:00.000Z", "n": 1, "s": "a"}
    assert stats["maxValues"] == {"at": "2024-05-01T12:00:00.006Z", "n": 3, "s": "b"}
    assert stats["nullCount"] == {"at": 0, "n": 0, "x": 0, "s": 1}
