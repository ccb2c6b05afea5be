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
from millstream.serve.lookup_text import from_text
from millstream.serve.lookup_values import from_python
from millstream.serve.sink import readable_sinks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.model.graph import Graph
    from millstream.serve.shape import Column
    from millstream.serve.sink import ReadableSink
    from millstream.serve.store import StoreReader

Answer = TypeVar("Answer")

_AT_ONCE = 4
"""Connections to one store; its server has other clients too."""
_KEPT_FOR_S = 30.0
"""Then another is opened: columns may have been added, or the file replaced."""


class Lookups:
    """The served answers of an app, each open for look-ups once it is asked for."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ReadableSink], ServedAnswer] = {}

    def of(self, graph: Graph, name: str) -> ServedAnswer:
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
        # Discarded if another thread was first: it has not connected yet.
        return self._open.get(place) or self._open.setdefault(place, ServedAnswer(*place))

    def close(self) -> None:
        """Close all connections."""
        for served in self._open.values():
            served.close()


class ServedAnswer:
    """A served answer, in which any number of threads may look rows up."""

    def __init__(self, dataset: str, sink: ReadableSink) -> None:
        self._dataset, self._sink = dataset, sink
        self._idle: list[_Connection] = []
        self._slots = threading.BoundedSemaphore(_AT_ONCE)
        self._lock, self._closings = threading.Lock(), 0

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the row of a key; None if there is none.

        Raises:
            LOOKUP_REFUSED: The columns are not those of the key.
            LOOKUP_VALUE: A value does not fit the type of its column.
        """
        self._check_key(tuple(key))

        def ask(reader: StoreReader) -> dict[str, Any] | None:
            columns = self._key_of(reader)
            return reader.get({c.name: from_python(key[c.name], c, self._dataset) for c in columns})

        return self._with_reader(ask)

    def get_by_text(self, pairs: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
        """Return the row of a key whose values are texts, such as in a URL.

        Raises:
            LOOKUP_REFUSED: The columns are not those of the key, or one occurs twice.
            LOOKUP_VALUE: A text is not a value of its column's type.
        """
        self._check_key([name for name, _ in pairs])
        texts = dict(pairs)

        def ask(reader: StoreReader) -> dict[str, Any] | None:
            columns = self._key_of(reader)
            return reader.get({c.name: from_text(texts[c.name], c, self._dataset) for c in columns})

        return self._with_reader(ask)

    def key(self) -> tuple[Column, ...]:
        """Return the columns of the key, as the store knows them."""
        return self._with_reader(self._key_of)

    def close(self) -> None:
        """Close all connections; those in use, once they are free."""
        with self._lock:
            self._closings += 1
        while (connection := self._pop_idle()) is not None:
            connection.reader.close()

    def _check_key(self, names: Sequence[str]) -> None:
        if not self._sink.key or sorted(names) != sorted(self._sink.key):
            key = ", ".join(self._sink.key)
            wanted = "give a value for each column of the key, and for no other"
            raise fault(
                "LOOKUP_REFUSED",
                dataset=self._dataset,
                given=listed(names),
                has=f"its key is {key}" if key else "it has no key",
                instead=wanted if key else "give the sink a key=[…]",
            )

    def _key_of(self, reader: StoreReader) -> tuple[Column, ...]:
        return tuple(reader.columns[name] for name in self._sink.key)

    def _with_reader(self, ask: Callable[[StoreReader], Answer]) -> Answer:
        with self._slots:
            if (connection := self._idle_connection()) is not None:
                try:
                    return self._use(connection, ask)
                except (StoreUnreachableError, StoreFailedError):
                    # Whatever ended this connection has ended the others too.
                    self.close()
            closings = self._closings
            return self._use(_Connection(self._open_reader(), time.monotonic(), closings), ask)

    def _use(self, connection: _Connection, ask: Callable[[StoreReader], Answer]) -> Answer:
        try:
            answer = ask(connection.reader)
        except CommandError:
            self._keep(connection)
            raise
        except BaseException:
            connection.reader.close()
            raise
        self._keep(connection)
        return answer

    def _keep(self, connection: _Connection) -> None:
        """Keep a connection for the next look-up, unless all were closed meanwhile."""
        with self._lock:
            if connection.closings == self._closings:
                self._idle.append(connection)
                return
        connection.reader.close()

    def _idle_connection(self) -> _Connection | None:
        while (connection := self._pop_idle()) is not None:
            if time.monotonic() - connection.since < _KEPT_FOR_S:
                return connection
            connection.reader.close()
        return None

    def _pop_idle(self) -> _Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            # Checking first is not enough: another thread may take it in between.
            return None

    def _open_reader(self) -> StoreReader:
        reader = self._sink.reader(self._dataset)
        if lacking := [name for name in self._sink.key if name not in reader.columns]:
            reader.close()
            why = f"what was served to it has no column {lacking[0]!r}, which is of the key now"
            raise fault("STORE_FAILED", store=repr(self._dataset), why=why)
        return reader


@dataclass(frozen=True, slots=True)
class _Connection:
    """A connection, and since when it is open."""

    reader: StoreReader
    since: float
    closings: int
    """How often all connections had been closed when it was opened."""
