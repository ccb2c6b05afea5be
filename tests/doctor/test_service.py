from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from tests.graphs import graph, serve, source

from millstream.doctor import look_at_services
from millstream.settings.secret import Secret
from millstream.systems.kafka.settings import Kafka
from millstream.testing.server import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_every_server_of_a_source_is_called(server: str, nobody: int) -> None:
    gone = f"{HOST}:{nobody}"
    app = graph(source("orders", connector=Kafka("orders", f"{server}, {gone},nonsense")))

    up, down, wrong = look_at_services(app, master="local[*]")

    assert (up.subject, up.state, up.what) == ("source orders", "ok", f"{server} answers")
    assert (down.state, down.what) == ("bad", f"{gone} does not answer: Connection refused")
    assert (wrong.state, wrong.fix) == ("bad", "write host:port")


def test_a_server_from_the_environment_is_not_named(nobody: int) -> None:
    servers = Secret(f"{HOST}:{nobody}", "${SERVERS}")
    app = graph(source("orders", connector=Kafka("orders", servers)))

    [found] = look_at_services(app, master="local[*]")

    assert found.what == "part 1 of ${SERVERS} does not answer: Connection refused"


def test_the_spark_master_is_called(server: str) -> None:
    [found] = look_at_services(graph(), master=f"spark://{server}")

    assert (found.subject, found.state) == ("master", "ok")


def test_sources_without_servers_are_passed_over() -> None:
    assert list(look_at_services(graph(source("orders")), master="local[*]")) == []


def test_every_server_of_a_sink_is_called(server: str) -> None:
    app = graph(source("s"), serve("out", "s", to=(Kafka("out", server),)))

    [up] = look_at_services(app, master="local[*]")

    assert (up.subject, up.state) == ("serve out", "ok")
