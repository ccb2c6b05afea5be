"""Records to prove an app with: those that its home has landed, or generated ones."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.landing.land import Landing
from millstream.model.duration import parse_duration
from millstream.systems.generator.source import Generator, made_up
from millstream.testing.course import Arrival
from millstream.testing.script import NOON

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.model.dataset import Source
    from millstream.model.graph import Graph

_PACE_WITHOUT_WATERMARK = timedelta(minutes=1)


def recorded(graph: Graph, home: Home, most: int) -> tuple[Arrival, ...]:
    """Take the first right rows that each source has landed in a home."""
    found: list[Arrival] = []
    for source in graph.sources:
        if source.name not in home.tables:
            continue
        names = list(Landing.of(source).schema.names)
        table = DeltaTable(str(home.table(source.name)))
        rows = table.to_pyarrow_table(columns=names, partitions=[("_verdict", "=", "ok")])
        if source.event_time:
            rows = rows.sort_by(source.event_time)
        for row in rows.slice(0, most).to_pylist():
            due = row[source.event_time] if source.event_time else NOON
            found.append(Arrival(source.name, row, due))
    return tuple(found)


def invented(graph: Graph, most: int, seed: int) -> tuple[Arrival, ...]:
    """Make up records for every source; a generator makes its own, faulty ones included."""
    return tuple(
        _generated(source, source.connector, number)
        if isinstance(source.connector, Generator)
        else _typed(source, random.Random(f"{seed}:{source.name}:{number}"), number)
        for source in graph.sources
        for number in range(most)
    )


def _generated(source: Source, generator: Generator, number: int) -> Arrival:
    due = NOON + number * _pace(source)
    text = generator.record(number, due, Landing.of(source).records)
    return Arrival(source.name, text, due)


def _typed(source: Source, dice: random.Random, number: int) -> Arrival:
    due = NOON + number * _pace(source)
    row: dict[str, Any] = made_up(Landing.of(source).schema, dice, number)
    if source.event_time:
        row[source.event_time] = due.isoformat()
    return Arrival(source.name, row, due)


def _pace(source: Source) -> timedelta:
    """Return a pace at which a few records fall into the delay of the watermark."""
    watermark = parse_duration(source.watermark) if source.watermark else _PACE_WITHOUT_WATERMARK
    return max(watermark / 5, timedelta(milliseconds=1))
