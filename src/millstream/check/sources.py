"""Faults of sources: schema, event time and the connector's own settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import MillstreamError, SchemaError, closest, fault, listed
from millstream.model.connector import Following, Placed, Receiving
from millstream.model.data_type import type_ddl
from millstream.model.duration import parse_duration
from millstream.model.schema import RESERVED_PREFIX, Schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from millstream.model.connector import Connector
    from millstream.model.dataset import Source
    from millstream.model.graph import Graph


def empty_app(graph: Graph) -> Iterator[MillstreamError]:
    """An app without a source."""
    if not graph.sources:
        yield fault("EMPTY_APP", app=graph.app)


def refused_schemas(graph: Graph) -> Iterator[MillstreamError]:
    """Schemas that cannot be read."""
    for source in graph.sources:
        try:
            Schema.parse(source.connector.schema)
        except SchemaError as error:
            yield error.located(source.at.of("schema"))
    for stream in graph.streams:
        try:
            Schema.parse(stream.schema)
        except SchemaError as error:
            yield error.located(stream.at.of("schema"))


def event_times(graph: Graph) -> Iterator[MillstreamError]:
    """Event times without a watermark, and those that are no timestamp column."""
    for source in graph.sources:
        if source.event_time and not source.watermark:
            yield fault(
                "WATERMARK_MISSING",
                at=source.at.of("event_time"),
                source=source.name,
                has="an event_time",
                lacks="watermark",
            )
        if source.watermark and not source.event_time:
            yield fault(
                "WATERMARK_MISSING",
                at=source.at.of("watermark"),
                source=source.name,
                has="a watermark",
                lacks="event_time",
            )
        yield from _event_time_column(source)


def _event_time_column(source: Source) -> Iterator[MillstreamError]:
    if source.event_time is None or _is_out_of_sight(source.connector):
        return
    try:
        schema = Schema.parse(source.connector.schema)
    except SchemaError:
        return
    types = {field.name: type_ddl(field.type) for field in schema.fields}
    got = types.get(source.event_time)
    if source.event_time_from is not None:
        yield from _unfit_name(source.event_time, source.event_time_from, types, source)
    elif got != "TIMESTAMP":
        yield fault(
            "EVENT_TIME_COLUMN",
            at=source.at,
            column=source.event_time,
            source=source.name,
            why="is not in its schema" if got is None else f"is {got}, not TIMESTAMP",
            nearest="" if got else closest(source.event_time, types),
            columns=listed(types),
        )


def _unfit_name(
    name: str, expression: str, columns: Collection[str], source: Source
) -> Iterator[MillstreamError]:
    """A computed event time whose column has the name of another."""
    why = None
    if name.startswith(RESERVED_PREFIX) or not name:
        why = f"has the name {name!r}, and names that begin with '_' are landing's own"
    elif name.lower() in {column.lower() for column in columns}:
        why = f"is to be the column {name!r}, which the schema has already"
    if why is not None:
        yield fault(
            "EVENT_TIME_EXPRESSION",
            at=source.at,
            source=source.name,
            expression=expression,
            why=why,
            instead=f'give it another name: event_time={{"happened_at": "{expression}"}}',
        )


def _is_out_of_sight(connector: Connector) -> bool:
    """Return whether a connector follows an unreadable table, so that no column is known."""
    return isinstance(connector, Following) and connector.followed() is None


def unbounded_event_times(graph: Graph) -> Iterator[MillstreamError]:
    """Event times of a table of another app that does not say how far behind a row may come."""
    for source in graph.sources:
        connector = source.connector
        followed = connector.followed() if isinstance(connector, Following) else None
        if followed is None or source.event_time is None or followed.delay is not None:
            continue
        if source.event_time == followed.event_time:
            yield fault(
                "EVENT_TIME_UNBOUNDED", at=source.at, source=source.name, column=source.event_time
            )


def idle_faults(graph: Graph) -> Iterator[MillstreamError]:
    """Sources whose watermark the clock cannot move."""
    for source in graph.sources:
        if source.idle is not None and (unfit := _unfit_idle(source)):
            why, instead = unfit
            yield fault(
                "IDLE_REFUSED",
                at=source.at,
                source=source.name,
                idle=source.idle,
                why=why,
                instead=instead,
            )


def _unfit_idle(source: Source) -> tuple[str, str] | None:
    if source.event_time is None or source.watermark is None:
        return "no watermark", 'give event_time="at", watermark="10 minutes" too, or leave it out'
    if source.live:
        return "is live", "leave live=True out: idleness is recorded when a source lands"
    if isinstance(source.connector, Following):
        why = "follows a table, whose frontier it has"
        return why, "leave it out here, and say it of the source that the table is made from"
    if _is_zero(source.idle):
        return "no time to be idle in", 'give a length of time, such as idle="10 minutes"'
    return None


def _is_zero(duration: str | None) -> bool:
    try:
        return duration is not None and not parse_duration(duration)
    except ValueError:
        return False


def live_receivers(graph: Graph) -> Iterator[MillstreamError]:
    """Sources that cannot replay and are not landed."""
    for source in graph.sources:
        if source.live and isinstance(source.connector, Receiving):
            kind = type(source.connector).__name__
            yield fault("LIVE_RECEIVER", at=source.at, source=source.name, connector=kind)


def missing_places(graph: Graph) -> Iterator[MillstreamError]:
    """Places that sources read and that do not exist on this machine."""
    for source in graph.sources:
        if isinstance(source.connector, Placed):
            yield from source.connector.missing(source.name, source.connector_at)


def connector_faults(graph: Graph) -> Iterator[MillstreamError]:
    """Whatever the connectors find wrong with their own settings."""
    for source in graph.sources:
        yield from source.connector.faults(source.name, source.connector_at)
