"""Look-ups over a real socket, in real stores."""

from __future__ import annotations

import itertools
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.console.conftest import Client, app_of, served
from tests.systems.conftest import SERVED
from tests.systems.stores import opened, put, table

import millstream as ms
from millstream.serve.shape import Column

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.testing.postgres import PostgresServer

    Ask = Callable[..., Client]

NUMBERS = itertools.count()
POSITIONS = {
    "vehicle": ("string", pa.string()),
    "trip": ("integer", pa.int32()),
    "at": ("timestamp", pa.timestamp("us", "UTC")),
    "speed": ("double", pa.float64()),
    "toll": ("decimal(8,2)", pa.decimal128(8, 2)),
    "stops": ("boolean", pa.bool_()),
}
COLUMNS = [Column(name, kind) for name, (kind, _) in POSITIONS.items()]
FIELDS: list[Any] = [(name, kind) for name, (_, kind) in POSITIONS.items()]
V7 = {
    "vehicle": "v7 & co",
    "trip": 12,
    "at": datetime(2026, 5, 1, 12, 0, 41, tzinfo=UTC),
    "speed": 13.5,
    "toll": Decimal("2.50"),
    "stops": None,
}


@pytest.fixture(params=SERVED)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    name = f"latest_{next(NUMBERS)}"

    def made(**options: Any) -> Any:
        match request.param:
            case "sqlite":
                return ms.SQLite(str(tmp_path / "fleet.db"), table=name, **options)
            case "postgres":
                server = request.getfixturevalue("postgres")
                return ms.Postgres(server.dsn, table=name, **options)
        return ms.Redis(request.getfixturevalue("redis").url, prefix=name, **options)

    return made


def test_a_row_is_answered_as_json_by_a_key_of_several_types(
    make: Callable[..., Any], ask: Ask
) -> None:
    sink = make(key=["vehicle", "trip", "at"])
    put(opened(sink, columns=COLUMNS), 0, table(V7, schema=pa.schema(FIELDS)))
    with served(app_of(latest=sink)) as console:
        client = ask(console)

        found = client.get("latest", trip="12", at="2026-05-01T14:00:41+02:00", vehicle="v7 & co")
        absent = client.get("latest", vehicle="v7", trip="12", at="2026-05-01T12:00:41Z")
        told = client.ask("/api/served")

    assert (found.status, found.headers["content-type"]) == (200, "application/json")
    assert found.json == {
        "vehicle": "v7 & co",
        "trip": 12,
        "at": "2026-05-01T12:00:41+00:00",
        "speed": 13.5,
        "toll": "2.50",
        "stops": None,
    }
    assert absent.status == 404
    assert absent.json["code"] == "ROW_MISSING"
    assert absent.json["what"].startswith("no row of 'latest' has vehicle='v7', trip='12', at=")
    key = [("vehicle", "string"), ("trip", "integer"), ("at", "timestamp")]
    assert told.json == [
        {
            "dataset": "latest",
            "key": [{"name": name, "type": kind} for name, kind in key],
            "fault": None,
        }
    ]


def test_many_ask_at_once_over_connections_that_stay_open(make: Callable[..., Any]) -> None:
    sink = make(key="id")
    store = opened(sink)
    put(store, 0, table(*({"id": n, "text": "0"} for n in range(20))))

    def look_up(url: str) -> list[tuple[int, int]]:
        client = Client(url)
        told = [client.get("latest", id=n % 20) for n in range(40)]
        client.close()
        return [(answer.status, answer.json["id"]) for answer in told]

    with served(app_of(latest=sink)) as console, ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(look_up, console.url) for _ in range(8)]
        for batch in range(1, 6):
            put(store, batch, table(*({"id": n, "text": str(batch)} for n in range(20))))
        answered = [one.result() for one in asked]

    assert answered == [[(200, n % 20) for n in range(40)]] * 8


def test_an_answer_does_not_wait_for_the_client_to_confirm_its_first_packet(
    ask: Ask, tmp_path: Path
) -> None:
    sink = ms.SQLite(str(tmp_path / "fleet.db"), table="latest", key="id")
    put(opened(sink), 0, table({"id": 1, "text": "one"}))
    with served(app_of(latest=sink)) as console:
        ask(console).get("latest", id=1)
        [accepted] = console._server.server_state.connections
        line = accepted.transport.get_extra_info("socket")

        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.services
@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_a_store_that_is_down_is_told_as_such_and_asked_again_when_it_is_back(
    kind: str, ask: Ask, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(kind)
    name = f"latest_{next(NUMBERS)}"
    sink: Any = (
        ms.Postgres(server.dsn, table=name, key="id")
        if kind == "postgres"
        else ms.Redis(server.url, prefix=name, key="id")
    )
    put(opened(sink), 0, table({"id": 1, "text": "one"}))
    with served(app_of(latest=sink)) as console:
        client = ask(console)
        before = client.get("latest", id=1)
        server.restart()
        after = client.get("latest", id=1)
        server.kill()
        down, listed = client.get("latest", id=1), client.ask("/api/served")
        server.start()
        back = client.get("latest", id=1)

    assert [told.status for told in (before, after, down, listed, back)] == [
        200,
        200,
        503,
        200,
        200,
    ]
    assert before.json == after.json == back.json == {"id": 1, "text": "one"}
    assert down.json["code"] == "STORE_UNREACHABLE"
    assert listed.json[0]["fault"]["code"] == "STORE_UNREACHABLE"
    assert server.password not in (down.body + listed.body).decode()


ASKED = [
    ("latst?id=1", 404, "UNKNOWN_DATASET", "there is no dataset 'latst'"),
    ("positions?id=1", 404, "NOT_SERVED", "'positions' is in no serving store"),
    ("never?id=1", 404, "NOTHING_SERVED", "nothing was ever served to SQLite table 'never'"),
    ("latest", 400, "LOOKUP_REFUSED", "a row of 'latest' is looked up by none; its key is id"),
    ("latest?id=1&n=2", 400, "LOOKUP_REFUSED", "a row of 'latest' is looked up by id, n; its key"),
    ("latest?id=1&id=2", 400, "LOOKUP_REFUSED", "a row of 'latest' is looked up by id, id; its"),
    ("latest?id=v7", 400, "LOOKUP_VALUE", "'id' of the key of 'latest' is long, and cannot be 'v"),
    ("latest?id=", 400, "LOOKUP_VALUE", "'id' of the key of 'latest' is long, and cannot be ''"),
    ("latest?id=7", 404, "ROW_MISSING", "no row of 'latest' has id='7'"),
    ("gone?id=1", 503, "STORE_UNREACHABLE", "Postgres table 'gone' at postgresql://a:***@127"),
]


def test_what_cannot_be_answered_is_told_with_the_fix(
    ask: Ask, tmp_path: Path, nobody: int
) -> None:
    sink = ms.SQLite(str(tmp_path / "fleet.db"), table="latest", key="id")
    never = ms.SQLite(str(tmp_path / "fleet.db"), table="never", key="id")
    gone = ms.Postgres(f"postgresql://a:sesame@127.0.0.1:{nobody}/a", key="id")
    put(opened(sink), 0, table({"id": 1, "text": "one"}))
    with served(app_of(latest=sink, never=never, gone=gone)) as console:
        client = ask(console)
        told = {path: client.ask(f"/api/get/{path}") for path, *_ in ASKED}

    assert told["latst?id=1"].json["fix"].startswith("did you mean 'latest'? names are ")
    for path, status, code, what in ASKED:
        answer = told[path]
        assert (answer.status, answer.json["code"]) == (status, code)
        assert answer.json["what"].startswith(what)
        assert answer.json.keys() == {"code", "what", "fix", "file", "line"}
        assert answer.headers["cache-control"] == "no-store"
        assert "sesame" not in answer.body.decode()


@pytest.mark.services
def test_rows_are_looked_up_in_the_first_store_that_can(
    postgres: PostgresServer, ask: Ask, tmp_path: Path
) -> None:
    first = ms.SQLite(str(tmp_path / "fleet.db"), table="latest", key="id")
    second = ms.Postgres(postgres.dsn, table=f"latest_{next(NUMBERS)}", key="text")
    put(opened(first), 0, table({"id": 1, "text": "first"}))
    with served(app_of(latest=[ms.Console(), first, second])) as console:
        told = ask(console).get("latest", id=1)

    assert told.json == {"id": 1, "text": "first"}


class Surprising:
    """A connection that raises what no store is known to."""

    columns = {"id": Column("id", "long")}  # noqa: RUF012

    def get(self, key: object) -> None:
        raise RuntimeError("boo")

    def close(self) -> None:
        """Nothing is open."""


def test_what_should_not_happen_is_told_and_its_trace_kept(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ms.SQLite, "reader", lambda *_: Surprising())
    traces = []

    def keep(error: Exception) -> str:
        traces.append(error)
        return "trace.txt"

    app = app_of(latest=ms.SQLite(str(tmp_path / "fleet.db"), key="id"))
    with served(app, keep) as console:
        client = ask(console)
        told, again = client.get("latest", id=1), client.ask("/api/served")

    assert (told.status, told.json["code"]) == (500, "UNEXPECTED")
    assert told.json["what"] == "this should not happen: RuntimeError: boo"
    assert told.json["fix"].endswith("report the trace in trace.txt")
    assert [str(error) for error in traces] == ["boo"]
    assert again.status == 200
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_no_database_is_told_as_out_of_order(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "fleet.db").write_text("not a database, but long enough to be taken for one" * 99)
    with served(app_of(latest=ms.SQLite(str(tmp_path / "fleet.db"), key="id"))) as console:
        told = ask(console).get("latest", id=1)

    assert (told.status, told.json["code"]) == (503, "STORE_FAILED")
