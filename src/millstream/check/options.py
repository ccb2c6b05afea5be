"""Faults of options: values that do not exist."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.errors import Location, MillstreamError, closest, fault
from millstream.model.batch import BOUNDS, BatchBound
from millstream.model.connector import BoundedReading
from millstream.model.dataset import (
    LATE_POLICIES,
    MODES,
    ON_VIOLATION,
    SOURCE_PARTITIONS,
    Alert,
    FunctionalStream,
    Model,
    Serve,
    Source,
)
from millstream.model.duration import parse_duration
from millstream.model.objective import EXPECTED, OBJECTIVES, is_objective
from millstream.model.trigger import TRIGGERS, Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.model.graph import Graph
    from millstream.model.query_options import QueryOptions


def _whole_seconds(text: str) -> timedelta:
    """Read a length of time of whole seconds.

    Raises:
        ValueError: It is not one.
    """
    length = parse_duration(text)
    if not length or length % timedelta(seconds=1):
        raise ValueError(text)
    return length


_LENGTHS = 'a number and a unit, such as "10 minutes", "1 day" or "500 ms"'
_PARSED: Mapping[str, tuple[Callable[[str], Any], str, str]] = {
    "trigger": (Trigger.parse, "trigger", TRIGGERS),
    "every": (_whole_seconds, "length of time", 'whole seconds, such as "10 minutes" or "1 day"'),
    "batch": (BatchBound.parse, "bound of batches", BOUNDS),
}
"""Options that may be more than a length of time: how each is read, and what it is."""
_LENGTH: tuple[Callable[[str], Any], str, str] = (parse_duration, "length of time", _LENGTHS)


def refused_options(graph: Graph) -> Iterator[MillstreamError]:
    """Options whose value is not one of a few."""
    for dataset in graph.queried:
        named: list[tuple[str, str, tuple[str, ...]]] = []
        if not isinstance(dataset, Serve):
            named.append(("on_violation", dataset.expect.on_violation, ON_VIOLATION))
        if isinstance(dataset, Source):
            named.append(("late", dataset.late, LATE_POLICIES))
            if dataset.partition_by is not None:
                named.append(("partition_by", dataset.partition_by, SOURCE_PARTITIONS))
        elif dataset.mode is not None:
            named.append(("mode", dataset.mode, MODES))
        for option, value, allowed in named:
            if value not in allowed:
                yield fault(
                    "OPTION_REFUSED",
                    at=dataset.at,
                    dataset=dataset.name,
                    option=option,
                    value=value,
                    nearest=closest(str(value), allowed),
                    allowed=", ".join(allowed),
                )


def unused_partitions(graph: Graph) -> Iterator[MillstreamError]:
    """Partitions by day of sources that have no event time, or are not landed."""
    for source in graph.sources:
        if source.partition_by is None or (source.event_time and not source.live):
            continue
        by = "live=True" if source.live else "a source without event_time"
        yield fault(
            "OPTION_UNUSED",
            at=source.at,
            source=source.name,
            option="partition_by",
            value=source.partition_by,
            by=by,
            fix="leave partition_by out" if source.live else "name the event time: event_time=…",
        )


def refused_durations(graph: Graph) -> Iterator[MillstreamError]:
    """Lengths of time that cannot be read."""
    yield from _refused(graph.app, _times(graph.options), None)
    for dataset in graph.declared:
        options = _times(dataset.options)
        if isinstance(dataset, Source):
            times = {"watermark": dataset.watermark, "future": dataset.future}
            options |= {**times, "idle": dataset.idle}
        if isinstance(dataset, Alert):
            options |= {"cooldown": dataset.cooldown, "retry_for": dataset.retry_for}
        if isinstance(dataset, Model):
            options |= {"every": dataset.every}
        if isinstance(dataset, FunctionalStream):
            options |= {"interval": dataset.interval}
        yield from _refused(dataset.name, options, dataset.at)


def _times(options: QueryOptions) -> dict[str, str | None]:
    return {name: value for name, value in asdict(options).items() if name not in OBJECTIVES}


def refused_windows(graph: Graph) -> Iterator[MillstreamError]:
    """Metrics of models over a number of rows that is none."""
    for dataset in graph.models:
        window: object = dataset.window
        if type(window) is not int or window < 1:
            yield fault(
                "OPERATOR_OPTION",
                at=dataset.at,
                call=f"model {dataset.name!r}",
                said=f"has window={window!r}",
                why="it is how many of the last rows are measured",
                instead="write a whole number from 1 on, such as window=1000",
            )


def uncounted_rows(graph: Graph) -> Iterator[MillstreamError]:
    """Bounds in rows of sources that do not know how many rows they are about to read."""
    for source in graph.sources:
        connector = source.connector
        with suppress(ValueError):
            bound = BatchBound.parse(graph.batch_of(source))
            in_bytes = isinstance(connector, BoundedReading) and connector.bounded_in == "bytes"
            if bound.rows and in_bytes:
                yield fault(
                    "BATCH_ROWS", at=source.at, source=source.name, batch=graph.batch_of(source)
                )


def refused_objectives(graph: Graph) -> Iterator[MillstreamError]:
    """Objectives that cannot be read."""
    for dataset in graph.declared:
        for option in OBJECTIVES:
            value = getattr(dataset.options, option)
            if value is not None and not is_objective(option, value):
                yield fault(
                    "OBJECTIVE_REFUSED",
                    at=dataset.at,
                    dataset=dataset.name,
                    option=option,
                    value=value,
                    expected=EXPECTED[option],
                )


def _refused(
    dataset: str, options: Mapping[str, str | None], at: Location | None
) -> Iterator[MillstreamError]:
    for option, value in options.items():
        if value is None:
            continue
        parse, wanted, expected = _PARSED.get(option, _LENGTH)
        try:
            parse(value)
        except ValueError:
            yield fault(
                "DURATION_REFUSED",
                at=at,
                dataset=dataset,
                option=option,
                value=value,
                wanted=wanted,
                expected=expected,
            )
