"""Server-sent events: a line to every open page when something has changed in the home."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fastapi import APIRouter, Response
from starlette.responses import StreamingResponse

from millstream.errors import MillstreamError, fault
from millstream.lake.home_mark import home_mark
from millstream.lake.lease import holder_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from millstream.lake.home import Home
    from millstream.lake.lease import Holder

_LOOK_EVERY_S = 1.0
_SAY_SOMETHING_EVERY_S = 15.0
_MOST_PAGES = 64


class HomeWatch:
    """Looks at a home once a second at most, for all pages that are open."""

    def __init__(self, home: Home, is_ending: Callable[[], bool]) -> None:
        self._home, self._is_ending = home, is_ending
        self._lock = threading.Lock()
        self._mark: int | None = None
        self._looked_in = -1
        self._open = 0

    def mark(self) -> int:
        """Return a number that has changed if the home had, when it was last looked at."""
        with self._lock:
            now_in = int(time.monotonic() / _LOOK_EVERY_S)
            if self._mark is None or now_in != self._looked_in:
                self._looked_in = now_in
                self._mark = hash((home_mark(self._home), _driver(self._home)))
            return self._mark

    async def stream(self) -> AsyncIterator[str]:
        """Give a line whenever the home has changed, and a comment now and then."""
        self._open += 1
        try:
            yield "retry: 1000\n\n"
            seen, said_at = await asyncio.to_thread(self.mark), time.monotonic()
            yield _line(seen)
            while not self._is_ending():
                await _next_look()
                if (mark := await asyncio.to_thread(self.mark)) != seen:
                    seen, said_at = mark, time.monotonic()
                    yield _line(seen)
                elif time.monotonic() - said_at > _SAY_SOMETHING_EVERY_S:
                    said_at = time.monotonic()
                    yield ": nothing has changed\n\n"
        finally:
            self._open -= 1

    def check_room(self) -> None:
        """Check that not too many pages are open.

        Raises:
            CONSOLE_BUSY: They are.
        """
        if self._open >= _MOST_PAGES:
            raise fault("CONSOLE_BUSY", running=self._open)


async def _next_look() -> None:
    """Wait until all pages are due: they then ask at the same time, and share the answers."""
    await asyncio.sleep(_LOOK_EVERY_S - time.monotonic() % _LOOK_EVERY_S)


def _driver(home: Home) -> Holder | None:
    """Return the driver of a home; what cannot be read is shown by the page."""
    with suppress(MillstreamError, OSError):
        return holder_of(home)
    return None


def routes(changes: HomeWatch) -> APIRouter:
    """Return the route of events."""
    router = APIRouter(prefix="/api")

    @router.get("/events")
    def events() -> Response:
        changes.check_room()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(changes.stream(), 200, headers, "text/event-stream")

    return router


def _line(mark: int) -> str:
    return f"data: {mark & 0xFFFFFFFF}\n\n"
