"""Sources that cannot replay, each from the outside to its landing table."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.apps import app_of, rows, wait_for
from tests.faults import raises

from millstream.errors import InboxClosedError
from millstream.systems.custom.receiver import Receiver
from millstream.systems.http.source import Http
from millstream.systems.socket.source import Socket
from millstream.testing.server import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.app import App
    from millstream.landing.inbox import Inbox
    from millstream.observe import Event

SCHEMA, DOWN = "id BIGINT", "line is down"


@contextmanager
def running(app: App, home: Path) -> Iterator[list[Event]]:
    events: list[Event] = []
    run = app.open({"home": home}, on_event=events.append)
    serving = threading.Thread(target=run.serve)
    serving.start()
    try:
        yield events
    finally:
        run.ask_to_stop()
        serving.join(60)
    run.raise_if_stopped_for_good()


def landed(home: Path, *columns: str) -> list[tuple[Any, ...]]:
    return rows(home, "readings", *columns)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def post(port: int, body: str, kind: str = "application/json", path: str = "/") -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", body.encode(), {"Content-Type": kind}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.spark
def test_a_post_is_answered_when_its_records_are_landed(spark: object, tmp_path: Path) -> None:
    [port] = free_ports(1)
    with running(app_of(Http(port, schema=SCHEMA)), tmp_path):
        wait_for(lambda: answers(port))

        assert post(port, '{"id": 1}') == (200, {"landed": 1})
        assert landed(tmp_path, "id") == [(1,)]
        assert post(port, '[{"id": 2},\n {"id": 3}]') == (200, {"landed": 2})
        assert post(port, '{"id": 4}\n{"id": \n', "application/x-ndjson") == (200, {"landed": 2})
        assert landed(tmp_path, "id", "_verdict") == [
            (1, "ok"), (2, "ok"), (3, "ok"), (4, "ok"), (None, "malformed"),
        ]  # fmt: skip

        assert post(port, '[{"id": 5}')[0] == 400
        assert post(port, '{"id": 5}', path="/other") == (404, {"error": "post to /"})
    assert len(landed(tmp_path)) == 5


@pytest.mark.spark
def test_a_receiver_that_raises_is_called_again_and_loses_nothing_landed(
    spark: object, tmp_path: Path
) -> None:
    sent, refused = iter(range(1, 100)), []

    def receive(inbox: Inbox) -> None:
        try:
            for number in sent:
                inbox.put(json.dumps({"id": number}))
                if number == 2:
                    raise OSError(DOWN)
                if number == 3:
                    break
            while True:
                inbox.wait(0.01)
                inbox.offer()
        except InboxClosedError as error:
            refused.append(error)
            raise

    with running(app_of(Receiver(receive, schema=SCHEMA)), tmp_path) as events:
        wait_for(lambda: (tmp_path / "tables/readings").exists() and len(landed(tmp_path)) == 3)

    assert landed(tmp_path, "id") == [(1,), (2,), (3,)]
    [failure] = [event for event in events if event.kind == "receiver_failed"]
    assert failure.error is not None
    assert failure.error.code == "RECEIVER_FAILED"
    assert failure.error.what == (f"the receiver of source 'readings' stopped: OSError: {DOWN}")
    assert refused


@pytest.mark.spark
def test_lines_of_a_socket_that_closes_are_landed_and_it_is_tried_again(
    spark: object, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        app = app_of(Socket("127.0.0.1", port))

        def serve() -> None:
            for text in (b"one\ntw", b"three\r\nfour\n"):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(text)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        with running(app, tmp_path) as events:
            wait_for(lambda: len(landed(tmp_path)) == 4)

    assert landed(tmp_path, "value") == [("four",), ("one",), ("three",), ("tw",)]
    closed = [event for event in events if event.kind == "receiver_failed"]
    assert closed[0].error is not None
    assert closed[0].error.what == f"the server at 127.0.0.1:{port} closed the connection"


def test_a_port_that_is_taken_is_reported_before_anything_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = app_of(Http(server.getsockname()[1])).graph.sources[0]
        with raises("PORT_TAKEN", match="source 'readings' cannot listen on"):
            source.connector.reach(None, source.name, source.at)  # type: ignore[arg-type]


def test_what_cannot_replay_cannot_be_live() -> None:
    app = app_of(Http(7401, schema=SCHEMA), live=True)
    [fault] = app.faults
    assert fault.code == "LIVE_RECEIVER"
    assert fault.what == ("source 'readings' is live, but what Http receives cannot be read again")


@pytest.mark.parametrize(
    "connector",
    [
        Http(7401, format="avro"),
        Socket("localhost", 9, format="avro"),
        Receiver(print, format="avro"),
    ],
)
def test_a_format_that_is_no_line_is_refused(connector: Any) -> None:
    [fault] = app_of(connector).faults
    assert fault.code == "FORMAT_REFUSED"
