"""Work that a run must not wait for: items worked off in order, in a thread of its own."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Item = TypeVar("Item")
_WAITS_AT_END_S = 10.0


class Background(Generic[Item]):
    """A bounded queue and the thread that empties it; it starts with the first item."""

    def __init__(
        self,
        name: str,
        work: Callable[[Item], None],
        *,
        most: int,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._work, self._at_end = work, at_end
        self._waiting: queue.Queue[Item | None] = queue.Queue(most)
        self._thread = threading.Thread(target=self._empty, name=name, daemon=True)
        self._has_begun = False

    def put(self, item: Item) -> bool:
        """Add an item; return False if so many wait that it is left out."""
        if not self._has_begun:
            self._has_begun = True
            self._thread.start()
        try:
            self._waiting.put_nowait(item)
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        """Work off what is left, for a while."""
        if self._has_begun:
            try:
                self._waiting.put(None, timeout=_WAITS_AT_END_S)
            except queue.Full:
                return
            self._thread.join(_WAITS_AT_END_S)

    def _empty(self) -> None:
        while (item := self._waiting.get()) is not None:
            self._work(item)
        self._at_end()
