"""Server-sent events: a line to every open page when something has changed in the home."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fastapi import APIRouter, Response
from starlette.responses import StreamingResponse

from millstream.errors import fault
from millstream.lake.home_mark import home_mark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from millstream.lake.home import Home

_LOOK_EVERY_S = 0.4
_SAY_SOMETHING_EVERY_S = 15.0
_MOST_PAGES = 64


class HomeWatch:
    """Looks at a home while pages are open, once for all of them."""

    def __init__(self, home: Home, is_ending: Callable[[], bool]) -> None:
        self._home, self._is_ending = home, is_ending
        self._mark: int | None = None
        self._looked_at = 0.0
        self._open = 0

    async def stream(self) -> AsyncIterator[str]:
        """Give a line whenever the home has changed, and a comment now and then."""
        self._open += 1
        try:
            yield "retry: 1000\n\n"
            seen, said_at = await self._look(), time.monotonic()
            yield _line(seen)
            while not self._is_ending():
                await asyncio.sleep(_LOOK_EVERY_S)
                if (mark := await self._look()) != seen:
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

    async def _look(self) -> int:
        if self._mark is None or time.monotonic() - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = time.monotonic()
            self._mark = await asyncio.to_thread(home_mark, self._home)
        return self._mark


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
