from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import raises
from tests.systems.stores import AT, ITEMS, table

import millstream as ms
from millstream.check import faults
from millstream.errors import OvertakenError, StoreFailedError, StoreUnreachableError
from millstream.lake.fence import PendingBatch
from millstream.model.dataset import Serve, Source
from millstream.model.graph import Graph
from millstream.serve.fence import Driver
from millstream.serve.shape import Shape
from millstream.testing.contract import AT_LEAST_ONCE, EXACTLY_ONCE, check_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from millstream.serve.store import Store, WriteResult
    from millstream.systems.custom.settings import FunctionSink

SHAPE = Shape("items", "append", ITEMS, (), AT)


def opened(sink: FunctionSink, folder: Path, epoch: int = 1, mode: str = "append") -> Store:
    driver = Driver("shop/items", epoch, "query", folder=folder)
    store = sink.open(replace(SHAPE, mode=mode), driver)
    store.take()
    return store


def put(store: Store, batch: int, *parts: pa.Table) -> WriteResult:
    return store.write(
        PendingBatch("query", batch, f"digest {batch}"), lambda: parts, lambda _: "{}"
    )


def to_file(file: Path) -> tuple[FunctionSink, Callable[[], Iterable[Any]]]:
    def add(rows: pa.Table, batch: ms.Batch) -> None:
        with file.open("a") as opened:
            opened.writelines(json.dumps(row) + "\n" for row in rows.to_pylist())

    def read() -> Iterable[Any]:
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    return ms.sink(add), read


def to_database(file: Path, *, in_parts: bool) -> tuple[FunctionSink, Callable[[], Iterable[Any]]]:
    def connect() -> sqlite3.Connection:
        db = sqlite3.connect(file, timeout=30, check_same_thread=False)
        db.execute("CREATE TABLE IF NOT EXISTS taken (id TEXT PRIMARY KEY)")
        db.execute("CREATE TABLE IF NOT EXISTS items (id INTEGER, text TEXT)")
        db.commit()
        return db

    def put_part(db: sqlite3.Connection, rows: pa.Table, batch: ms.Batch) -> None:
        with db:
            if db.execute("INSERT OR IGNORE INTO taken VALUES (?)", (batch.id,)).rowcount:
                db.executemany("INSERT INTO items VALUES (:id, :text)", rows.to_pylist())

    def put_batch(rows: pa.Table, batch: ms.Batch) -> None:
        db = connect()
        put_part(db, rows, batch)
        db.close()

    def read() -> Iterable[Any]:
        db = connect()
        rows = db.execute("SELECT id, text FROM items").fetchall()
        db.close()
        return [{"id": id_, "text": text} for id_, text in rows]

    if in_parts:
        return ms.partition_sink(put_part, connect=connect, parallel=2), read
    return ms.sink(put_batch), read


def test_a_function_that_takes_no_id_twice_has_every_row_once(tmp_path: Path) -> None:
    for in_parts in (False, True):
        folder = tmp_path / str(in_parts)
        folder.mkdir()
        report = check_function(
            lambda name, folder=folder, in_parts=in_parts: to_database(  # type: ignore[misc]
                folder / f"{name}.db", in_parts=in_parts
            ),
            folder,
        )
        report.assert_guarantee(EXACTLY_ONCE)


def test_a_function_that_only_adds_has_every_row_at_least_once(tmp_path: Path) -> None:
    report = check_function(lambda name: to_file(tmp_path / name), tmp_path / "notes")

    assert report.guarantee == AT_LEAST_ONCE
    [broken] = [trial for trial in report.trials if not trial.is_passed]
    assert broken.name == "crash when the function has returned, then a retry"
    assert broken.found == "0 rows missing, 4 that should not be there"


def test_a_batch_comes_whole_and_under_an_id_that_stays(tmp_path: Path) -> None:
    handed: list[tuple[Any, ms.Batch]] = []
    sink = ms.sink(lambda rows, batch: handed.append((rows.to_pylist(), batch)), name="kept")
    store = opened(sink, tmp_path)

    put(store, 0, table({"id": 1, "text": "one"}), table({"id": 2, "text": "two"}))
    put(store, 1)
    put(store, 2, table({"id": 3, "text": "three"}))
    assert not put(store, 2, table({"id": 3, "text": "three"})).applied

    assert [(len(rows), batch.number) for rows, batch in handed] == [(2, 0), (1, 2)]
    assert handed[0][1] == ms.Batch("shop/items/query/0", 0, "append")
    nothing = opened(sink, tmp_path, epoch=2, mode="complete")
    put(nothing, 3)
    assert handed[-1][0] == []
    with pytest.raises(OvertakenError):
        put(store, 4, table({"id": 9, "text": "stale"}))
    assert len(handed) == 3


def test_parts_have_a_connection_each_that_is_opened_once_and_used_again(tmp_path: Path) -> None:
    opened_at: list[Connection] = []
    away = "the server is away"
    busy, most, lock, together = 0, 0, threading.Lock(), threading.Event()

    class Connection:
        closed = False

        def __init__(self) -> None:
            opened_at.append(self)

        def close(self) -> None:
            self.closed = True

    parts: list[tuple[str, int]] = []

    def take(connection: Connection, rows: pa.Table, batch: ms.Batch) -> None:
        nonlocal busy, most
        assert not connection.closed
        with lock:
            busy += 1
            most = max(most, busy)
            if busy > 1:
                together.set()
            parts.append((batch.id, rows.num_rows))
        together.wait(10)
        with lock:
            busy -= 1
        if rows.column("text")[0].as_py() == "poison":
            raise ConnectionResetError(away)

    store = opened(ms.partition_sink(take, connect=Connection, parallel=3), tmp_path)
    for batch in range(3):
        put(store, batch, *(table({"id": n, "text": "x"}) for n in range(10)))

    assert sorted(parts[:10]) == [(f"shop/items/query/0/{n}", 1) for n in range(10)]
    assert 1 < most <= 3
    assert len(opened_at) <= 3
    with pytest.raises(StoreUnreachableError, match="ConnectionResetError: the server is away"):
        put(store, 3, table({"id": 1, "text": "poison"}), table({"id": 2, "text": "x"}))
    assert sum(each.closed for each in opened_at) == 1
    assert put(store, 3, table({"id": 1, "text": "x"})).applied
    store.close()
    assert all(each.closed for each in opened_at)


def test_what_a_function_raises_stops_the_query_and_names_it(tmp_path: Path) -> None:
    def broken(rows: pa.Table, batch: ms.Batch) -> None:
        raise ValueError(batch.id)

    store = opened(ms.sink(broken), tmp_path)

    with raises("SINK_RAISED", match="'broken', which 'items' is served to") as raised:
        put(store, 0, table({"id": 1, "text": "x"}))
    assert not raised.value.transient


def serve_faults(*sinks: Any) -> Sequence[str]:
    source = Source("orders", ms.Memory("id BIGINT"), AT)
    serve = Serve("items", ("orders",), lambda orders: orders, AT, sinks)
    return [str(fault) for fault in faults(Graph("shop", (source, serve)))]


def test_a_function_that_cannot_be_called_and_two_of_one_name_are_refused() -> None:
    def good(rows: pa.Table, batch: ms.Batch) -> None: ...

    assert serve_faults(ms.sink(good), ms.sink(good, name="other")) == []
    [one] = serve_faults(ms.sink(lambda rows: None))  # type: ignore[arg-type,misc]
    assert "[SINK_FUNCTION]" in one
    assert "have it take 2 arguments: lambda(rows, batch)" in one
    [two] = serve_faults(ms.sink(good), ms.sink(good))
    assert "[SAME_SINKS]" in two
    [three] = serve_faults(ms.partition_sink(good, connect=dict))  # type: ignore[arg-type]
    assert "(connection, rows, batch)" in three


@pytest.mark.parametrize("parallel", [0, -1, "4", 1.5, True])
def test_a_number_of_parts_that_is_none_is_refused(parallel: Any) -> None:
    def good(connection: object, rows: pa.Table, batch: ms.Batch) -> None: ...

    [fault] = serve_faults(ms.partition_sink(good, connect=dict, parallel=parallel))

    assert f"parallel={parallel!r} is no number of parts at a time" in fault
    assert "at:  app.py:9" in fault


@pytest.mark.parametrize("name", ["../../x", "a/b", ".."])
def test_a_name_that_leads_out_of_the_home_is_refused(name: str) -> None:
    [fault] = serve_faults(ms.sink(lambda rows, batch: None, name=name))

    assert "[STORE_MODE]" in fault
    assert "no file can have this name" in fault


@pytest.mark.parametrize(
    ("sink", "why"),
    [
        (ms.Redis("redis//:oyster@db:6379", key="id"), "does not begin with redis://"),
        (ms.Redis("http://:oyster@db:6379", key="id"), "does not begin with redis://"),
        (ms.Redis("redis://:oyster@db:port", key="id"), "the port, or an option, of its address"),
        (ms.Redis("redis://db/0?socket_timeout=long", key="id"), "is no value that Redis's"),
        (ms.Redis("redis://db/0?sockettimeout=5", key="id"), "option 'sockettimeout' that does"),
        (ms.Postgres("postgresql:/me:oyster@db/shop"), "its address cannot be read"),
        (ms.Postgres("postgresql://me:oyster@db/shop?sslmod=require"), "an option that does not"),
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_runs(sink: Any, why: str) -> None:
    [fault] = serve_faults(sink)

    assert "[STORE_MODE]" in fault
    assert why in fault
    assert "at:  app.py:9" in fault
    assert "oyster" not in fault
    with pytest.raises(StoreFailedError) as failed:
        sink.reader("items")
    assert "oyster" not in str(failed.value)
