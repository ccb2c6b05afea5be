"""Connections of clients: how many there may be, and how long one may wait with a post."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio


class Connections:
    """All connections of a receiver: those that keep it waiting make room for others."""

    def __init__(self, most: int) -> None:
        self._most, self._open = most, 0
        self._waiting: dict[Connection, None] = {}
        """Those whose post has not arrived yet; the longest wait is first."""

    def opened(self, connection: Connection) -> bool:
        """Count a connection; return whether there is room for it."""
        self._open += 1
        longest = next(iter(self._waiting), None)
        self._waiting[connection] = None
        if self._open <= self._most:
            return True
        if longest is not None:
            del self._waiting[longest]
            longest.transport.abort()
        return longest is not None

    def closed(self, connection: Connection) -> None:
        """Count a connection no more."""
        self._open -= 1
        self.arrived(connection)

    def waits(self, connection: Connection) -> None:
        """Note that a connection has been answered and waits for the next post."""
        self._waiting[connection] = None

    def arrived(self, connection: Connection) -> None:
        """Note that the whole post of a connection is there."""
        self._waiting.pop(connection, None)


class Connection(H11Protocol):
    """One connection; uvicorn sets no time limit for headers, so this does."""

    def __init__(
        self, connections: Connections, header_timeout_s: float, **of_uvicorn: Any
    ) -> None:
        state = {**of_uvicorn.pop("app_state"), "connection": self}
        super().__init__(app_state=state, **of_uvicorn)
        self._connections, self._header_timeout_s = connections, header_timeout_s
        self._deadline: asyncio.TimerHandle | None = None
        self._is_asking = False
        self.has_room = True
        """Whether it may post: there were not too many connections when it was opened."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a header."""
        super().connection_made(transport)
        self.has_room = self._connections.opened(self)
        self._expect_header()

    def data_received(self, data: bytes) -> None:
        """Read some bytes; those after an answer are the header of a further post."""
        if not self._is_asking and self._deadline is None:
            self._expect_header()
        try:
            super().data_received(data)
        except h11.ProtocolError:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._expect_nothing()
        self._connections.closed(self)
        super().connection_lost(exc)

    def begin(self) -> None:
        """Note that a header is complete."""
        self._is_asking = True
        self._expect_nothing()

    def arrived(self) -> None:
        """Note that the body is complete, too."""
        self._connections.arrived(self)

    def end(self) -> None:
        """Note that the post is answered."""
        self._is_asking = False
        if not self.transport.is_closing():
            self._connections.waits(self)

    def _expect_header(self) -> None:
        self._deadline = self.loop.call_later(self._header_timeout_s, self.transport.abort)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
