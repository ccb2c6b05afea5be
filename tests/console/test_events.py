from __future__ import annotations

import asyncio
import time
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

from tests.faults import raises

from millstream.console import events
from millstream.console.events import HomeWatch
from millstream.lake.home import Home

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MANY = 10_000


def test_a_page_too_many_is_refused_until_another_is_closed(tmp_path: Path) -> None:
    async def visit() -> None:
        watch, pages = HomeWatch(Home.at(tmp_path), lambda: False), list[Any]()
        with raises("CONSOLE_BUSY", match=r"\d+"):
            for _ in range(MANY):
                watch.check_room()
                pages.append(watch.stream())
                await anext(pages[-1])
        await pages.pop().aclose()
        watch.check_room()
        assert 1 < len(pages) < MANY

    asyncio.run(visit())


def test_however_many_pages_are_open_the_home_is_looked_at_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count()
    monkeypatch.setattr(events, "home_mark", lambda _: next(looks))

    async def read(watch: HomeWatch) -> list[float]:
        times, stream = list[float](), watch.stream()
        async for line in stream:
            if line.startswith("data:"):
                times.append(time.monotonic())
            if len(times) == 4:
                break
        await stream.aclose()  # type: ignore[attr-defined]
        return times

    async def visit() -> list[list[float]]:
        watch = HomeWatch(Home.at(tmp_path), lambda: False)
        return await asyncio.gather(*(read(watch) for _ in range(5)))

    began = time.monotonic()
    pages = asyncio.run(visit())
    took = time.monotonic() - began

    # Every look finds another change: each page has one line for it, within the same second.
    assert next(looks) <= took + 2
    for times in pages:
        assert all(later - earlier > 0.5 for earlier, later in pairwise(times[1:]))
    assert max(page[-1] for page in pages) - min(page[-1] for page in pages) < 0.5
