from __future__ import annotations

import socket

from tests.proxy import Proxy

from millstream.testing.server import HOST


def said_to(port: int) -> bytes:
    with socket.create_connection((HOST, port), timeout=60) as line:
        return line.recv(1)


def test_a_client_of_a_server_that_is_down_is_hung_up_on(nobody: int) -> None:
    with Proxy(nobody) as proxy:
        assert said_to(proxy.port) == b""
        assert said_to(proxy.port) == b""


def test_another_proxy_may_listen_where_one_did(nobody: int) -> None:
    with Proxy(nobody) as first:
        pass

    with Proxy(nobody, at=first.port) as second:
        assert said_to(second.port) == b""
