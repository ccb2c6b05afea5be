"""A mark of a home that changes when anything is committed in it; cheap to take."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.lake.home import Home


def home_mark(home: Home) -> int:
    """Return a number that another commit, driver, failure or delivery changes."""
    return hash(tuple(_changed_at(place) for place in _places(home)))


def _places(home: Home) -> Iterator[Path]:
    yield from (home.lease, home.troubles, home.path / "served", home.alerts)
    yield from (home.alerts / name for name in ("deliveries.db", "deliveries.db-wal"))
    yield from (home.path / "observe" / name for name in ("history.db", "history.db-wal"))
    yield from (home.models / name for name in _names(home.models))
    yield from (home.table(name) / "_delta_log" for name in _names(home.tables_folder))


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _changed_at(place: Path) -> tuple[int, int]:
    try:
        found = place.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
