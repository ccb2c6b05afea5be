from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.faults import raises

from millstream.testing import server
from millstream.testing.server import HOST, free_ports, program

if TYPE_CHECKING:
    import pytest


def test_a_port_is_given_once_and_not_if_another_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as given:
        monkeypatch.setattr(server, "_CLAIMS", given)
        one, other, heard, claimed = free_ports(4)
    with ExitStack() as claims, socket.create_server((HOST, heard)):
        monkeypatch.setattr(server, "_CLAIMS", claims)
        assert server._claim(claimed)
        monkeypatch.setattr(server, "_PORTS", (claimed, heard, one, other))

        found = free_ports(2)

    assert set(found) == {one, other}


def test_the_system_gives_none_of_the_ports_to_those_that_let_it_choose() -> None:
    with socket.create_server((HOST, 0)) as chosen:
        assert chosen.getsockname()[1] not in server._PORTS


def test_a_server_that_is_not_installed_is_named_with_its_package() -> None:
    with raises("SERVICE_MISSING", match="'no-such-server'.*") as missing:
        program("no-such-server", package="redis-server", beside="usr/lib/no-such-folder/*")

    assert missing.value.fix.startswith("`apt-get install redis-server`")
