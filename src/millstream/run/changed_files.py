"""Files that changed after a source read them: the rows that were read stay, and it is reported."""

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


class ChangedFiles:
    """The files that sources of a run have read and that have changed since."""

    def __init__(
        self, queries: Sequence[Query], home: Home, on_event: Callable[[Event], None]
    ) -> None:
        self._queries, self._home, self._on_event = queries, home, on_event
        self._reported: set[str] = set()
        self._look_at = 0.0

    def look(self, *, now: bool = False) -> None:
        """Report each changed file once; look every half minute, or now."""
        if not now and time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        for query in self._queries:
            if query.kind != "landing":
                continue
            for path in changed_files(self._home.checkpoint(query.name)):
                if path not in self._reported:
                    self._reported.add(path)
                    self._on_event(Event("file_changed", query.name, path))
