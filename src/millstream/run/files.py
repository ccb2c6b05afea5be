"""Files that were changed after they were read: what was read stands, and that is told."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from millstream.checkpoint import changed_files
from millstream.observe import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.lake.home import Home
    from millstream.plan import Query

_LOOK_EVERY_S = 30.0


class ReadFiles:
    """The files that the sources of a run have read."""

    def __init__(self, queries: Sequence[Query], home: Home, tell: Callable[[Event], None]) -> None:
        self._queries, self._home, self._tell = queries, home, tell
        self._told: set[str] = set()
        self._look_at = 0.0

    def look(self, *, now: bool = False) -> None:
        """Tell of each file once that it was changed; looked for every half minute, or now."""
        if not now and time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        for query in self._queries:
            if query.kind != "landing":
                continue
            for path in changed_files(self._home.checkpoint(query.name)):
                if path not in self._told:
                    self._told.add(path)
                    self._tell(Event("file_changed", query.name, path))
