"""Files and Delta tables: dying at every step, what readers see, and what cannot be written."""

from __future__ import annotations

import csv
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.faults import raises
from tests.systems.stores import FIELDS, opened, put, rows_in, table

from millstream.errors import OvertakenError, StoreFailedError, StoreUnreachableError
from millstream.serve.fence import Driver
from millstream.serve.shape import GONE, Column
from millstream.systems.delta.settings import DeltaPath
from millstream.systems.files import sink as store_files
from millstream.systems.files.settings import OWN, FileSink

if TYPE_CHECKING:
    from collections.abc import Callable

ONE, TWO = {"id": 1, "text": "a"}, {"id": 2, "text": "b"}
STEPS = ("fsync", "replace", "rename", "link", "unlink")


class PowerCut(BaseException):
    """The driver is no more."""


def dying(act: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """Have a step be the last, when none are left."""

    def step(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise PowerCut
        return act(*args, **options)

    return step


def written_until(steps: int, sink: FileSink, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Write two batches and die at a step; tell whether there were so many."""
    left = [steps]
    with monkeypatch.context() as patch, suppress(PowerCut):
        for name in STEPS:
            patch.setattr(os, name, dying(getattr(os, name), left))
        store = opened(sink, mode="append")
        put(store, 0, table(ONE))
        put(store, 1, table(TWO))
    return left[0] <= 0


def test_a_driver_that_dies_at_any_step_leaves_whole_files_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, died = 0, True
    while died:
        steps += 1
        sink = FileSink(str(tmp_path / str(steps)), "json")
        died = written_until(steps, sink, monkeypatch)
        for file in Path(sink.path).glob("*.json"):
            assert json.loads(file.read_text()) in (ONE, TWO)
        later = opened(sink, epoch=2, mode="append")
        held = later.fence()
        assert held is not None
        for batch, row in enumerate((ONE, TWO)):
            assert put(later, batch, table(row)).applied == (batch > held.batch)

        assert rows_in(sink) == [ONE, TWO]
        assert {f.suffix for f in (Path(sink.path) / OWN).iterdir()} <= {".json", ".lock"}

    assert steps > 15


def test_files_are_parquet_json_or_csv_one_for_each_batch_with_rows(tmp_path: Path) -> None:
    nested = pa.struct([("tags", pa.list_(pa.string()))])
    schema = pa.schema([*(pa.field(*f) for f in FIELDS), pa.field("more", nested)])
    columns = [Column("id", "long"), Column("text", "string"), Column("more", "json")]
    row = {"id": 1, "text": 'a,"b"\n', "more": {"tags": ["x", None]}}
    for form in ("parquet", "json", "csv"):
        sink = FileSink(str(tmp_path / form), form)
        store = opened(sink, mode="append", columns=columns)
        put(store, 0, table(row, schema=schema), table(row | {"id": 2}, schema=schema))
        put(store, 1, table(schema=schema))
        put(store, 2, table(row | {"id": 3}, schema=schema))

    names = sorted(file.stem for file in (tmp_path / "json").glob("*.*"))
    assert names == ["items-00000000", "items-00000002"]
    assert pq.read_table(tmp_path / "parquet").num_rows == 3
    lines = (tmp_path / "json" / "items-00000000.json").read_text().splitlines()
    assert json.loads(lines[1]) == row | {"id": 2}
    with (tmp_path / "csv" / "items-00000000.csv").open(newline="") as file:
        first, _ = csv.DictReader(file)
    assert first == {"id": "1", "text": 'a,"b"\n', "more": '{"tags":["x",null]}'}


def test_files_of_others_and_of_a_zombie_are_distinguished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FileSink(str(tmp_path), "json")
    early = opened(sink, mode="append")
    put(early, 0, table(ONE))
    later = opened(sink, epoch=2, mode="append")
    with pytest.raises(OvertakenError):
        put(early, 1, table(TWO))
    with raises("STORE_TAKEN"):
        sink.open(early.__getattribute__("_shape"), Driver("shop/others", 1)).take()
    (tmp_path / "items-00000001.json").write_text("theirs")
    with pytest.raises(StoreFailedError, match=r"'items-00000001\.json' is there, and the fence"):
        put(later, 1, table(TWO))
    (tmp_path / "items-00000001.json").unlink()
    monkeypatch.setattr(store_files, "_WAIT_S", 0.1)
    alone: Any = early.__getattribute__("_locked")
    with alone(), pytest.raises(StoreUnreachableError, match="another process holds"):
        put(later, 1, table(TWO))

    put(later, 1, table(TWO))

    assert rows_in(sink) == [ONE, TWO]


def test_a_delta_table_is_appended_to_changed_or_replaced_in_one_commit_a_batch(
    tmp_path: Path,
) -> None:
    for mode, key, expected in (
        ("append", [], [ONE, ONE, TWO]),
        ("update", ["id"], [ONE, TWO]),
        ("complete", [], [TWO]),
    ):
        sink = DeltaPath(str(tmp_path / mode), key=key)
        store = opened(sink, mode=mode)
        before = DeltaTable(sink.path).version()
        put(store, 0, table(ONE), table())
        put(store, 1, *([table(ONE), table(TWO)] if mode == "append" else [table(TWO)]))
        put(store, 1, table(TWO))

        assert rows_in(sink) == expected
        assert DeltaTable(sink.path).version() == before + 2
        assert not list((tmp_path / mode / "_millstream").iterdir())


def test_a_delta_table_keeps_its_fence_behind_commits_of_others_and_its_columns(
    tmp_path: Path,
) -> None:
    sink, more = DeltaPath(str(tmp_path / "t")), [Column("id", "long"), Column("n", "integer")]
    put(opened(sink, mode="append"), 0, table(ONE))
    for number in range(60):
        DeltaTable(sink.path).alter.set_table_properties({"delta.appendOnly": str(number % 2 == 0)})

    with raises("FAULTS", match="COLUMN_ADDED.*'n'"):
        opened(sink, mode="append", columns=more)
    evolving = DeltaPath(sink.path, evolve=True)
    store = opened(evolving, epoch=2, mode="append", columns=more)
    held = store.fence()

    assert held is not None
    assert (held.batch, held.epoch) == (0, 2)
    rows = pa.table({"id": [7], "n": pa.array([8], pa.int32())})
    assert put(store, 1, rows).applied
    assert {(row["id"], row["n"]) for row in rows_in(sink)} == {(1, None), (7, 8)}


def test_a_batch_that_changes_nothing_in_a_delta_table_is_committed_too(tmp_path: Path) -> None:
    sink = DeltaPath(str(tmp_path / "t"), key=["id"], delete_when="text = 'gone'")
    store = opened(sink)
    schema = pa.schema([*(pa.field(*f) for f in FIELDS), pa.field(GONE, pa.bool_())])

    put(store, 0, table({"id": 1, "text": "gone", GONE: True}, schema=schema))

    held = store.fence()
    assert held is not None
    assert held.batch == 0
