"""A real Postgres server for tests."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING, ClassVar

from millstream.testing.server import HOST, Server, program

if TYPE_CHECKING:
    from collections.abc import Sequence

_BINARIES = "usr/lib/postgresql/*/bin"
_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "30",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
    "deadlock_timeout": "500ms",
}


class PostgresServer(Server):
    """One Postgres server with the user `miller`, whose password it really asks for."""

    name = "Postgres"
    user = "postgres"
    password: ClassVar[str] = "grist-and-chaff"
    # Killed in another way, its backends live on for a while and hold the port.
    killed_by = signal.SIGQUIT

    @property
    def dsn(self) -> str:
        """Where it answers, with user and password."""
        return self.address(self.port)

    def address(self, port: int, *, password: str | None = None) -> str:
        """Return its address at another port, or with another password."""
        return f"postgresql://miller:{password or self.password}@{HOST}:{port}/postgres"

    def prepare(self) -> None:
        """Make the data folder."""
        secret = self.folder / "password"
        secret.write_text(self.password)
        # The server's user reads it; it is in a folder that nobody else may enter.
        secret.chmod(0o644)
        self.run(
            program("initdb", package="postgresql", beside=_BINARIES),
            *("--pgdata", str(self.folder / "data"), "--username", "miller"),
            *("--auth", "scram-sha-256", "--pwfile", str(secret)),
            *("--no-sync", "--encoding", "UTF8", "--locale", "C"),
        )

    def command(self) -> Sequence[str]:
        """Serve on the loopback only."""
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        server = program("postgres", package="postgresql", beside=_BINARIES)
        return [server, "-D", str(self.folder / "data"), "-p", str(self.port), *settings]

    def answers(self) -> bool:
        """Return whether it accepts clients: it declines TLS, and its state is ready."""
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as line:
                line.sendall(bytes.fromhex("0000000804d2162f"))
                state = (self.folder / "data" / "postmaster.pid").read_text()
                return line.recv(1) == b"N" and state.rstrip().endswith("ready")
        except OSError:
            return False
