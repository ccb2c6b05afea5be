"""A real Redis server for tests."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, ClassVar

from millstream.testing.server import HOST, Server, program

if TYPE_CHECKING:
    from collections.abc import Sequence


class RedisServer(Server):
    """One Redis server that asks for a password and forces every write to disk."""

    name = "Redis"
    password: ClassVar[str] = "husk-and-bran"

    @property
    def url(self) -> str:
        """Where it answers, with the password."""
        return self.address(self.port)

    def address(self, port: int, *, password: str | None = None) -> str:
        """Return its address at another port, or with another password."""
        return f"redis://:{password or self.password}@{HOST}:{port}/0"

    def command(self) -> Sequence[str]:
        """Serve on the loopback only, with a log of all that is written."""
        return [
            program("redis-server", package="redis-server"),
            *("--port", str(self.port), "--bind", HOST, "--dir", str(self.folder)),
            *("--requirepass", self.password, "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "always"),
        ]

    def answers(self) -> bool:
        """Return whether it replies to PING."""
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as line:
                line.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                with line.makefile("rb") as replies:
                    return (replies.readline(), replies.readline()) == (b"+OK\r\n", b"+PONG\r\n")
        except OSError:
            return False
