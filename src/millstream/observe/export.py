"""Sends what a run records to other systems, in a thread of its own: traces and lineage."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from millstream.errors import concealed
from millstream.observe import Event
from millstream.observe.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from millstream.lake.home import Home
    from millstream.model.graph import Graph
    from millstream.observe.history_writer import Record
    from millstream.observe.record import RunRecord

_MOST_WAITING = 10_000
_TRACES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_LINEAGE = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT__TYPE")


class Exporter(Protocol):
    """Something that is sent what a run records."""

    def export(self, record: Record) -> None:
        """Send a record, or put it with others to be sent."""
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


def exporters(graph: Graph, home: Home, run: RunRecord) -> Iterable[Exporter]:
    """Make the exporters that the environment asks for, by the variables of their own clients."""
    if _is_asked_for(_TRACES) and find_spec("opentelemetry.sdk"):
        from millstream.observe.traces import TraceExporter

        yield TraceExporter(graph.app, run)
    if _is_asked_for(_LINEAGE) and find_spec("openlineage"):
        from millstream.observe.lineage import LineageExporter

        yield LineageExporter(graph, home, run)


class Export:
    """Exporters, and a queue before them: one that is slow delays nothing, and loses records."""

    def __init__(
        self, make: Callable[[], Iterable[Exporter]], on_event: Callable[[Event], None]
    ) -> None:
        self._make, self._on_event = make, on_event
        self._made: Sequence[Exporter] | None = None
        self._is_asked_for, self._has_reported = is_asked_for(), False
        self._background = Background(
            "export", self._export, most=_MOST_WAITING, at_end=self._close_all
        )

    def add(self, record: Record) -> None:
        """Send a record, later; leave it out if too many wait."""
        if self._is_asked_for and not self._background.put(record):
            self._report(f"more than {_MOST_WAITING} records wait to be sent")

    def close(self) -> None:
        """Send what is left, for a while."""
        self._background.close()

    def _export(self, record: Record) -> None:
        if self._made is None:
            self._made = ()
            try:
                self._made = tuple(self._make())
            except Exception as error:
                self._report(f"{type(error).__name__}: {error}")
        self._each([partial(exporter.export, record) for exporter in self._made])

    def _close_all(self) -> None:
        self._each([exporter.close for exporter in self._made or ()])

    def _each(self, acts: Iterable[Callable[[], None]]) -> None:
        for act in acts:
            try:
                act()
            except Exception as error:
                self._report(f"{type(error).__name__}: {error}")

    def _report(self, why: str) -> None:
        if not self._has_reported:
            self._has_reported = True
            self._on_event(Event("export_failed", "", concealed(why)))


def is_asked_for() -> bool:
    """Whether the environment asks for any exporter."""
    return _is_asked_for((*_TRACES, *_LINEAGE))


def _is_asked_for(variables: Iterable[str]) -> bool:
    return any(os.environ.get(variable) for variable in variables)
