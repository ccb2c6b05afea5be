"""Lines from a TCP server."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.systems.record_source import ReceiverSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from millstream.landing.inbox import Inbox

_ANSWER_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.2
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Socket(ReceiverSource):
    """Lines that a server sends to its clients.

    What has arrived is kept until it is landed. A socket knows no acknowledgement: what was under
    way when the driver died is lost, as with any reader of a socket. It connects when it receives
    and never before, since a server that takes one client would lose its first lines.
    """

    host: str
    port: int
    format: str = "text"
    schema: str | StructType = "value STRING"

    def receive(self, inbox: Inbox) -> None:
        """Hand over lines until the app stops.

        Raises:
            SOCKET_UNREACHABLE: No server answers.
            SOCKET_CLOSED: The server closed the connection.
        """
        rest = b""
        with self._connect() as connection:
            connection.settimeout(_LOOK_EVERY_S)
            while not inbox.is_closed:
                try:
                    chunk = connection.recv(_CHUNK)
                except TimeoutError:
                    continue
                except ConnectionError:
                    chunk = b""
                whole, newline, rest = (rest + chunk).rpartition(b"\n")
                if newline:
                    inbox.offer(whole)
                if not chunk:
                    # A last line without an end is a line all the same.
                    inbox.offer(rest)
                    raise fault("SOCKET_CLOSED", address=self._address)

    def _connect(self) -> socket.socket:
        try:
            return socket.create_connection((self.host, self.port), _ANSWER_WITHIN_S)
        except OSError as error:
            raise fault(
                "SOCKET_UNREACHABLE",
                address=self._address,
                port=self.port,
                why=str(error),
            ) from error

    @property
    def _address(self) -> str:
        return f"{self.host}:{self.port}"
