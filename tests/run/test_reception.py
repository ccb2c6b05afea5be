"""Receivers at work, without Spark and without waiting: the inbox keeps what they hand over."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.apps import app_of, wait_for

from millstream.landing.inbox import Inbox
from millstream.run import reception
from millstream.run.reception import Reception
from millstream.run.supervise import DEFAULT
from millstream.systems.custom.receiver import Receiver
from millstream.systems.socket.source import Socket
from millstream.testing.server import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.model.connector import Connector
    from millstream.observe import Event

LOST = "line is down"


class Hurried(Inbox):
    """Pauses for no time, and records for how long it should have."""

    def __init__(self, place: Path) -> None:
        self.pauses: list[float] = []
        super().__init__(place, epoch=1, landed=lambda: "")

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Hurried]:
    inbox = Hurried(tmp_path / "readings")
    yield inbox
    inbox.close()


def received(connector: Connector, inbox: Inbox, **options: Any) -> tuple[Reception, list[Event]]:
    events: list[Event] = []
    [source] = app_of(connector).graph.sources
    source.connector.reach(None, source.name, source.at)  # type: ignore[arg-type]
    return Reception(source, inbox, DEFAULT, events.append, **options), events


def test_a_server_that_takes_one_client_loses_no_line(inbox: Hurried, tmp_path: Path) -> None:
    listening = socket.create_server((HOST, *free_ports(1)))

    def serve() -> None:
        connection, _ = listening.accept()
        listening.close()
        with connection:
            connection.sendall(b"one\ntwo\nthr")
            connection.sendall(b"ee\nfour")

    server = threading.Thread(target=serve)
    server.start()
    receiving, events = received(Socket(*listening.getsockname()), inbox)
    server.join(60)
    wait_for(lambda: len(events) > 1)
    receiving.close()

    files = sorted(tmp_path.glob("readings/*.txt"))
    assert b"".join(file.read_bytes() for file in files) == b"one\ntwo\nthree\nfour\n"
    reported = [event.error for event in events[:2] if event.error]
    assert [error.code for error in reported] == ["SOCKET_CLOSED", "SOCKET_UNREACHABLE"]
    assert all(error.at is not None for error in reported)
    assert reported[1].what.startswith("no server answers at 127.0.0.1:")


def test_a_reset_connection_keeps_what_had_arrived(inbox: Hurried, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiving, events = received(Socket(*listening.getsockname()), inbox)
        connection, _ = listening.accept()
        connection.sendall(b"one\ntw")
        wait_for(lambda: list(tmp_path.glob("readings/*.txt")))
        # Closing without lingering resets the connection.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        wait_for(lambda: events)
        receiving.close()

    files = sorted(tmp_path.glob("readings/*.txt"))
    assert b"".join(file.read_bytes() for file in files) == b"one\ntw\n"


def test_a_receiver_that_does_not_return_holds_the_stop_for_five_seconds_at_most(
    inbox: Hurried, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reception._ENDS_WITHIN_S == 5.0
    monkeypatch.setattr(reception, "_ENDS_WITHIN_S", 0.01)
    called, release = threading.Event(), threading.Event()

    def stuck(_: Inbox) -> None:
        called.set()
        release.wait(120)

    receiving, events = received(Receiver(stuck), inbox)
    assert called.wait(60)
    began = time.monotonic()
    receiving.close()
    lasted_s = time.monotonic() - began
    release.set()

    assert lasted_s < 60
    assert inbox.is_closed
    assert not events


def test_pauses_grow_while_it_fails_and_start_anew_after_a_long_good_run(inbox: Hurried) -> None:
    now, runs = [0.0], iter((0.0, 59.0, 0.5, 61.0, 0.0))
    done = threading.Event()

    def receive(_: Inbox) -> None:
        if (lasts_s := next(runs, None)) is None:
            done.set()
            return
        now[0] += lasts_s
        raise OSError(LOST)

    receiving, events = received(Receiver(receive), inbox, clock=lambda: now[0])
    assert done.wait(60)
    receiving.close()

    assert inbox.pauses == [1.0, 2.0, 4.0, 1.0, 2.0]
    assert [event.detail for event in events] == [f"again in {s:.0f} s" for s in inbox.pauses]
    assert events[0].error is not None
    assert events[0].error.what == f"the receiver of source 'readings' stopped: OSError: {LOST}"
