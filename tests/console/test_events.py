from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.faults import raises

from millstream.console.events import HomeWatch
from millstream.lake.home import Home

if TYPE_CHECKING:
    from pathlib import Path

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
