"""Look-ups in serving stores by several threads: few connections, opened again when they break."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.errors import (
    CommandError,
    StoreFailedError,
    StoreUnreachableError,
    closest,
    fault,
    listed,
)
from millstream.serve.lookup_values import from_python
from millstream.serve.sink import readable_sinks
from millstream.serve.text import from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.model.graph import Graph
    from millstream.serve.shape import Column
    from millstream.serve.sink import ReadableSink
    from millstream.serve.store import Reader

Answer = TypeVar("Answer")

_AT_ONCE = 4
"""Connections to one place; a store's server has to serve others too."""
_KEPT_FOR_S = 30.0
"""Then another is opened: columns may have been added, or a file put in the place of another."""


class Lookups:
    """The served answers of an app, each open for look-ups once it is asked for."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ReadableSink], Served] = {}

    def of(self, graph: Graph, name: str) -> Served:
        """Find a served answer by its name.

        Raises:
            UNKNOWN_DATASET: The app declares no such dataset.
            NOT_SERVED: It is in no store.
        """
        served = readable_sinks(graph)
        if name not in served:
            if name not in graph.datasets:
                known = graph.datasets
                raise fault(
                    "UNKNOWN_DATASET", name=name, nearest=closest(name, known), known=listed(known)
                )
            raise fault("NOT_SERVED", dataset=name, served=listed(served))
        place = (name, served[name])
        # Made and forgotten, if another thread was first: it has connected to nothing yet.
        return self._open.get(place) or self._open.setdefault(place, Served(*place))

    def close(self) -> None:
        """Let all connections go."""
        for served in self._open.values():
            served.close()


class Served:
    """A served answer, in which any number of threads may look rows up."""

    def __init__(self, dataset: str, sink: ReadableSink) -> None:
        self._dataset, self._sink = dataset, sink
        self._idle: list[_Line] = []
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._lock, self._closings = threading.Lock(), 0

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Give the row of a key; None if there is none.

        Raises:
            LOOKUP_REFUSED: Other columns are given than those of the key.
            LOOKUP_VALUE: A value can be none of its column's.
        """
        self._hold_to_key(tuple(key))

        def ask(reader: Reader) -> dict[str, Any] | None:
            columns = self._key_of(reader)
            return reader.get({c.name: from_python(key[c.name], c, self._dataset) for c in columns})

        return self._asked(ask)

    def get_by_text(self, given: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
        """Give the row of a key whose values are texts, such as in an address.

        Raises:
            LOOKUP_REFUSED: Other columns are given than those of the key, or one twice.
            LOOKUP_VALUE: A text is no value of its column's type.
        """
        self._hold_to_key([name for name, _ in given])
        texts = dict(given)

        def ask(reader: Reader) -> dict[str, Any] | None:
            columns = self._key_of(reader)
            return reader.get({c.name: from_text(texts[c.name], c, self._dataset) for c in columns})

        return self._asked(ask)

    def key(self) -> tuple[Column, ...]:
        """Say which columns the key has, as the store knows them."""
        return self._asked(self._key_of)

    def close(self) -> None:
        """Let all connections go; those in use, when they are not any more."""
        with self._lock:
            self._closings += 1
        while (line := self._popped()) is not None:
            line.reader.close()

    def _hold_to_key(self, given: Sequence[str]) -> None:
        if not self._sink.key or sorted(given) != sorted(self._sink.key):
            key = ", ".join(self._sink.key)
            wanted = "give a value for each column of the key, and for no other"
            raise fault(
                "LOOKUP_REFUSED",
                dataset=self._dataset,
                given=listed(given),
                has=f"its key is {key}" if key else "it has no key",
                instead=wanted if key else "give the sink a key=[…]",
            )

    def _key_of(self, reader: Reader) -> tuple[Column, ...]:
        return tuple(reader.columns[name] for name in self._sink.key)

    def _asked(self, ask: Callable[[Reader], Answer]) -> Answer:
        with self._room:
            if (line := self._waiting()) is not None:
                try:
                    return self._on(line, ask)
                except (StoreUnreachableError, StoreFailedError):
                    # Whatever ended this connection, the others have not been spared.
                    self.close()
            closings = self._closings
            return self._on(_Line(self._opened(), time.monotonic(), closings), ask)

    def _on(self, line: _Line, ask: Callable[[Reader], Answer]) -> Answer:
        try:
            answer = ask(line.reader)
        except CommandError:
            self._keep(line)
            raise
        except BaseException:
            line.reader.close()
            raise
        self._keep(line)
        return answer

    def _keep(self, line: _Line) -> None:
        """Have a connection wait for the next look-up, unless all were let go meanwhile."""
        with self._lock:
            if line.closings == self._closings:
                self._idle.append(line)
                return
        line.reader.close()

    def _waiting(self) -> _Line | None:
        while (line := self._popped()) is not None:
            if time.monotonic() - line.since < _KEPT_FOR_S:
                return line
            line.reader.close()
        return None

    def _popped(self) -> _Line | None:
        try:
            return self._idle.pop()
        except IndexError:
            # To look first would not do: another thread may be quicker.
            return None

    def _opened(self) -> Reader:
        reader = self._sink.reader(self._dataset)
        if lacking := [name for name in self._sink.key if name not in reader.columns]:
            reader.close()
            why = f"what was served to it has no column {lacking[0]!r}, which is of the key now"
            raise fault("STORE_FAILED", store=repr(self._dataset), why=why)
        return reader


@dataclass(frozen=True, slots=True)
class _Line:
    """A connection, and since when it is open."""

    reader: Reader
    since: float
    closings: int
    """How often all connections had been let go when it was opened."""
