"""Connections that send no request within a few seconds are closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

_REQUEST_WITHIN_S = 10.0


class ImpatientProtocol(H11Protocol):
    """uvicorn's own, which waits for the first request for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of the first request."""
        super().connection_made(transport)
        self.loop.call_later(_REQUEST_WITHIN_S, self._close_unless_asked)

    def _close_unless_asked(self) -> None:
        if self.scope is None and not self.transport.is_closing():
            self.transport.close()
