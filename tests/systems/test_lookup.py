"""Look-ups by several threads and by texts, in every store that can be asked."""

from __future__ import annotations

import itertools
import json
import pickle
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.faults import raises
from tests.systems.stores import ITEMS, opened, put, row_of, table
from tests.systems.test_stores import EVERYTHING

from millstream.errors import StoreFailedError, StoreUnreachableError
from millstream.serve import lookup
from millstream.serve.lookup import ServedAnswer
from millstream.serve.lookup_text import from_text
from millstream.serve.lookup_values import from_python
from millstream.serve.shape import Column
from millstream.systems.postgres.settings import Postgres as PostgresSink
from millstream.systems.redis.settings import Redis as RedisSink
from millstream.systems.sqlite.settings import SQLite
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millstream.serve.store import StoreReader
    from millstream.testing.postgres import PostgresServer

    Make = Callable[..., Any]

NUMBERS = itertools.count()


@dataclass
class Counted:
    """A store that counts how often it is connected to."""

    sink: Any
    opened: list[StoreReader] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sink, name)

    def reader(self, dataset: str) -> StoreReader:
        self.opened.append(self.sink.reader(dataset))
        return self.opened[-1]


def schema_of(**kinds: Any) -> pa.Schema:
    fields: list[Any] = list(kinds.items())
    return pa.schema(fields)


@pytest.fixture
def serve() -> Iterator[Callable[[Any], ServedAnswer]]:
    made: list[ServedAnswer] = []

    def of(sink: Any) -> ServedAnswer:
        made.append(ServedAnswer("items", sink))
        return made[-1]

    yield of
    for served in made:
        served.close()


@pytest.mark.parametrize("key", [name for name in EVERYTHING if name not in ("nothing", "empty")])
def test_a_row_is_found_by_the_text_that_an_answer_in_json_has_for_its_key(
    make: Make, serve: Callable[[Any], ServedAnswer], key: str
) -> None:
    sink = make(key=[key])
    columns = [Column(name, kind) for name, (kind, _, _) in EVERYTHING.items()]
    schema = schema_of(**{name: kind for name, (_, kind, _) in EVERYTHING.items()})
    row = {name: value for name, (_, _, value) in EVERYTHING.items()}
    put(opened(sink, columns=columns), 0, table(row, schema=schema))
    expected = row | {"nested": {"start": 'q"', "tags": {"a": [1, 2]}}}
    reported = json.loads(to_json(expected))[key]

    found = serve(sink).get_by_text(
        [(key, reported if isinstance(reported, str) else json.dumps(reported))]
    )

    assert found == expected


def test_a_number_is_found_however_many_digits_it_is_asked_for_with(
    make: Make, serve: Callable[[Any], ServedAnswer]
) -> None:
    sink = make(key=["price", "share"])
    columns = [Column("price", "decimal(10,2)"), Column("share", "float")]
    schema = schema_of(price=pa.decimal128(10, 2), share=pa.float32())
    put(
        opened(sink, columns=columns),
        0,
        table({"price": Decimal("1.50"), "share": 0.1}, schema=schema),
    )
    served = serve(sink)

    texts = ["1.5", "1.50", "1.500", "15e-1"]
    found = [served.get_by_text([("price", text), ("share", "0.1")]) for text in texts]

    assert all(row is not None and row["price"] == Decimal("1.50") for row in found)
    share = float(pa.scalar(0.1, pa.float32()).as_py())
    assert row_of(sink, price=Decimal("1.5"), share=share) is not None
    assert row_of(sink, price=Decimal("1e20"), share=share) is None


def test_a_value_that_no_store_can_hold_is_in_no_row(make: Make) -> None:
    sink = make(key=["id", "text"])
    put(opened(sink), 0, table({"id": 1, "text": "one"}))

    assert row_of(sink, id=2**70, text="one") is None
    assert row_of(sink, id=1, text="o\x00ne") is None


TWO = timezone(timedelta(hours=2))
MOMENT = datetime(2026, 5, 1, tzinfo=UTC)
MIDNIGHT = MOMENT.replace(tzinfo=None)
GIVEN: list[tuple[str, pa.DataType, Any, list[Any]]] = [
    ("long", pa.int64(), 7, [7, 7.0, Decimal(7), np.int64(7), np.float32(7), "7"]),
    ("double", pa.float64(), 7.0, [7, 7.0, np.int8(7), np.float64(7), Decimal("7.0"), "7"]),
    ("float", pa.float32(), 0.1, [0.1, np.float32(0.1), Decimal("0.1"), "0.1"]),
    ("decimal(5,2)", pa.decimal128(5, 2), Decimal("1.50"), [1.5, Decimal("1.5"), "1.5"]),
    ("boolean", pa.bool_(), True, [True, np.bool_(True), "true"]),
    ("date", pa.date32(), date(2026, 5, 1), [date(2026, 5, 1), MIDNIGHT, "2026-05-01"]),
    (
        "timestamp",
        pa.timestamp("us", "UTC"),
        MOMENT,
        [
            MOMENT,
            MOMENT.astimezone(TWO),
            MIDNIGHT,
            date(2026, 5, 1),
            pd.Timestamp(MOMENT),
            np.datetime64("2026-05-01T00:00:00", "us"),
            "2026-05-01T00:00:00Z",
        ],
    ),
    (
        "timestamp_ntz",
        pa.timestamp("us"),
        MIDNIGHT,
        [MIDNIGHT, date(2026, 5, 1), "2026-05-01T00:00"],
    ),
    ("string", pa.string(), "a", ["a", np.str_("a")]),
    ("binary", pa.binary(), b"a", [b"a", bytearray(b"a"), memoryview(b"a")]),
    ("json", pa.list_(pa.int64()), [1, 2], [[1, 2], (1, 2), "[1, 2]"]),
]


@pytest.mark.parametrize(("kind", "arrow", "value", "given"), GIVEN, ids=[g[0] for g in GIVEN])
def test_a_row_is_found_by_any_value_of_python_that_is_the_same(
    make: Make,
    serve: Callable[[Any], ServedAnswer],
    kind: str,
    arrow: pa.DataType,
    value: Any,
    given: list[Any],
) -> None:
    sink = make(key=["k"])
    store = opened(sink, columns=[Column("k", kind), Column("text", "string")])
    put(store, 0, table({"k": value, "text": "a"}, schema=schema_of(k=arrow, text=pa.string())))
    served = serve(sink)

    found = [served.get({"k": one}) for one in given]

    assert [row["text"] if row else one for row, one in zip(found, given, strict=True)] == [
        "a" for _ in given
    ]


IMPOSSIBLE = [
    ("long", 7.5),
    ("long", True),
    ("long", 2**70),
    ("long", float("nan")),
    ("long", object()),
    ("long", None),
    ("byte", 128),
    ("double", "x"),
    ("double", 10**400),
    ("float", 1e39),
    ("boolean", 1),
    ("decimal(5,2)", 1.234),
    ("decimal(5,2)", Decimal("NaN")),
    ("date", MIDNIGHT.replace(hour=12)),
    ("date", 20260501),
    ("timestamp", 1_777_000_000),
    ("timestamp", "noon"),
    ("timestamp_ntz", MOMENT),
    ("string", 7),
    ("binary", "a"),
    ("json", 7),
]


@pytest.mark.parametrize(("kind", "value"), IMPOSSIBLE)
def test_a_value_that_a_column_cannot_have_is_refused(kind: str, value: Any) -> None:
    with raises("LOOKUP_VALUE") as refusal:
        from_python(value, Column("k", kind), "items")

    assert refusal.value.what.startswith(f"'k' of the key of 'items' is {kind}, and cannot be ")
    assert pickle.loads(pickle.dumps(refusal.value)).fix == refusal.value.fix


REFUSED = [
    ("long", "v7"),
    ("long", "1_000"),
    ("long", "9223372036854775808"),
    ("byte", "128"),
    ("integer", "1.0"),
    ("integer", ""),
    ("double", "1e999"),
    ("double", "nan"),
    ("float", "1e39"),
    ("boolean", "yes"),
    ("decimal(5,2)", "1.234"),
    ("decimal(5,2)", "1000"),
    ("decimal(5,2)", "NaN"),
    ("date", "2026-02-30"),
    ("timestamp", "noon"),
    ("timestamp", "2026-05-01T12:00:00 02:00"),
    ("timestamp_ntz", "2026-05-01T12:00:00Z"),
    ("binary", "%"),
    ("json", "{"),
]


@pytest.mark.parametrize(("kind", "text"), REFUSED)
def test_a_text_that_is_no_value_of_its_column_is_refused(kind: str, text: str) -> None:
    with raises("LOOKUP_VALUE") as refusal:
        from_text(text, Column("k", kind), "items")

    assert refusal.value.what == f"'k' of the key of 'items' is {kind}, and cannot be {text!r}"


def test_a_time_without_a_zone_is_in_utc_and_one_with_another_is_the_same_moment() -> None:
    at = Column("at", "timestamp")

    moments = {
        from_text(text, at, "items")
        for text in ("2026-05-01T12:00:00Z", "2026-05-01 12:00", "2026-05-01T14:00:00+02:00")
    }

    assert len(moments) == 1


@pytest.mark.parametrize("given", [[], ["text"], ["id", "id"], ["id", "text"]])
def test_other_columns_than_those_of_the_key_are_refused(
    given: list[str], serve: Callable[[Any], ServedAnswer], tmp_path: Path
) -> None:
    served = serve(SQLite(str(tmp_path / "never made.db"), key="id"))

    with raises("LOOKUP_REFUSED", match="its key is id"):
        served.get_by_text([(name, "1") for name in given])


def test_without_a_key_nothing_is_looked_up(
    serve: Callable[[Any], ServedAnswer], tmp_path: Path
) -> None:
    with raises("LOOKUP_REFUSED", match="it has no key"):
        serve(SQLite(str(tmp_path / "never made.db"))).get({})


def test_threads_look_rows_up_while_they_are_written_over_few_connections(
    make: Make, serve: Callable[[Any], ServedAnswer]
) -> None:
    sink = Counted(make(key=["id"]))
    store, served = opened(sink), serve(sink)
    put(store, 0, table(*({"id": n, "text": "0"} for n in range(20))))

    def look_up(thread: int) -> list[Any]:
        rows = [served.get({"id": n % 20}) for n in range(thread, thread + 60)]
        return [row["id"] for row in rows if row]

    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(look_up, thread) for thread in range(8)]
        for batch in range(1, 6):
            put(store, batch, table(*({"id": n, "text": str(batch)} for n in range(20))))

    for thread, answered in enumerate(asked):
        assert answered.result() == [n % 20 for n in range(thread, thread + 60)]
    assert 1 <= len(sink.opened) <= 4
    assert served.get({"id": 3}) == {"id": 3, "text": "5"}


@pytest.mark.services
@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_a_server_that_was_started_again_is_asked_again_and_one_that_is_down_is_reported(
    kind: str, serve: Callable[[Any], ServedAnswer], request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(kind)
    name = f"restarted_{next(NUMBERS)}"
    sink: Any = (
        PostgresSink(server.dsn, table=name, key="id")
        if kind == "postgres"
        else RedisSink(server.url, prefix=name, key="id")
    )
    put(opened(sink), 0, table({"id": 1, "text": "one"}))
    served, row = serve(sink), {"id": 1, "text": "one"}

    assert served.get({"id": 1}) == row
    server.restart()
    assert served.get({"id": 1}) == row
    server.kill()
    with pytest.raises(StoreUnreachableError):
        served.get({"id": 1})
    server.start()
    assert served.get({"id": 1}) == row


@pytest.mark.services
def test_a_table_that_others_lock_is_reported_as_unreachable(
    postgres: PostgresServer, serve: Callable[[Any], ServedAnswer]
) -> None:
    import psycopg

    sink = Counted(PostgresSink(postgres.dsn, table=f"locked_{next(NUMBERS)}", key="id"))
    put(opened(sink), 0, table({"id": 1, "text": "one"}))
    served = serve(sink)
    served.get({"id": 1})
    sink.opened[0]._db.execute("SET lock_timeout TO '50ms'")  # type: ignore[attr-defined]

    with psycopg.connect(postgres.dsn) as other:
        other.execute(f"LOCK TABLE {sink.table} IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnreachableError, match="lock timeout"):
            sink.opened[0].get({"id": 1})


def test_a_table_that_was_made_anew_is_read_as_it_is_now(
    serve: Callable[[Any], ServedAnswer], tmp_path: Path
) -> None:
    path = str(tmp_path / "items.db")
    sink = SQLite(path, key="id")
    put(opened(sink), 0, table({"id": 1, "text": "one"}))
    served = serve(sink)
    served.get({"id": 1})
    with sqlite3.connect(path) as db:
        db.executescript("DROP TABLE items; DELETE FROM millstream_fence;")
    db.close()
    columns = [Column("id", "long"), Column("title", "string")]
    schema = schema_of(id=pa.int64(), title=pa.string())
    put(opened(sink, columns=columns), 0, table({"id": 1, "title": "one"}, schema=schema))

    assert served.get({"id": 1}) == {"id": 1, "title": "one"}


def test_columns_that_were_added_are_there_when_a_connection_has_had_its_time(
    serve: Callable[[Any], ServedAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = SQLite(str(tmp_path / "items.db"), key="id", evolve=True)
    put(opened(sink), 0, table({"id": 1, "text": "one"}))
    served = serve(sink)
    served.get({"id": 1})
    columns = [*ITEMS, Column("n", "long")]
    schema = schema_of(id=pa.int64(), text=pa.string(), n=pa.int64())
    put(
        opened(sink, epoch=2, columns=columns),
        1,
        table({"id": 1, "text": "one", "n": 5}, schema=schema),
    )

    monkeypatch.setattr(lookup, "_KEPT_FOR_S", 0.0)

    assert served.get({"id": 1}) == {"id": 1, "text": "one", "n": 5}


def test_a_key_that_was_never_served_is_reported_with_its_column(
    serve: Callable[[Any], ServedAnswer], tmp_path: Path
) -> None:
    path = str(tmp_path / "items.db")
    put(opened(SQLite(path, key="id")), 0, table({"id": 1, "text": "one"}))

    with pytest.raises(StoreFailedError, match="no column 'user', which is of the key now"):
        serve(SQLite(path, key="user")).get({"user": "ann"})


def test_a_store_that_is_not_running_is_reported_at_once(
    serve: Callable[[Any], ServedAnswer], nobody: int
) -> None:
    with pytest.raises(StoreUnreachableError):
        serve(PostgresSink(f"postgresql://shop@127.0.0.1:{nobody}/shop", key="id")).get({"id": 1})


def test_a_connection_that_is_in_use_when_all_are_let_go_is_closed_after(
    serve: Callable[[Any], ServedAnswer], tmp_path: Path
) -> None:
    sink = Counted(SQLite(str(tmp_path / "items.db"), key="id"))
    put(opened(sink), 0, table({"id": 1, "text": "one"}))
    served = serve(sink)
    served.get({"id": 1})
    reader: Any = sink.opened[0]
    ask, began, closed = reader.get, threading.Event(), threading.Event()

    def slowly(key: Any) -> Any:
        began.set()
        closed.wait(10)
        return ask(key)

    reader.get = slowly
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(served.get, {"id": 1})
        began.wait(10)
        served.close()
        closed.set()

    assert asked.result() == {"id": 1, "text": "one"}
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        reader._db.execute("SELECT 1")
    assert served.get({"id": 1}) == {"id": 1, "text": "one"}
