"""What an answer would have been over all that is landed: run as a batch, counted by time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from millstream.build.build import build
from millstream.build.inputs import Snapshots
from millstream.errors import closest, fault, listed
from millstream.lake.frontier import NOTHING_YET, least, watermark_ms
from millstream.lake.log import facts_of
from millstream.lake.table import accepted_rows
from millstream.model.dataset import Source, Table, View
from millstream.operators.build_context import BuildOptions, of_watermark
from millstream.operators.columns import quoted
from millstream.spark.nodes import has_windows
from millstream.trial.batch import is_beyond

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.lake.home import Home
    from millstream.model.graph import Graph

PERIODS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_FEW = 3
"""For so few days rows are counted by the hour, and for so few hours by the minute."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """What an answer would have been."""

    rows: int
    since: datetime | None
    """The first event of the history that it was run over; None without an event time."""
    until: datetime | None
    by: str | None
    """The column whose time the rows are counted by; None if there is none."""
    per: str
    counts: tuple[tuple[datetime, int], ...]
    """Rows by the beginning of each period in which there was any."""
    columns: tuple[str, ...]
    sample: tuple[tuple[Any, ...], ...]
    """The last rows."""


class LandedHistory:
    """What is landed of the sources of an app, and what its answers are over it."""

    def __init__(self, graph: Graph, spark: SparkSession, home: Home) -> None:
        self._graph, self._home = graph, home
        self._landed = Snapshots(graph, spark, home)

    def backtest(
        self, name: str, *, rows: int = 5, by: str | None = None, per: str | None = None
    ) -> Backtest:
        """Run an answer over history, as far as the stream is complete by now.

        Args:
            name: A table, a view, or anything else that is computed from sources.
            rows: How many of the last rows to show.
            by: The column whose time to count by; else the event time, a window, or the first.
            per: The period to count by; else what suits the length of the history.

        Raises:
            UNKNOWN_DATASET: The app declares none of this name.
            NOTHING_TO_BACKTEST: It is a source.
            LIVE_IN_BATCH: It is made from a live source: nothing of it is landed.
            NOTHING_LANDED: A source has not landed anything yet.
            BACKTEST_TIME: There is no such column.
        """
        sources = self._sources(name)
        since, until = self._span(sources)
        period = per or suitable_period(since, until)
        options = BuildOptions(complete_us=self._complete_us(sources), models=self._home.models)
        frame, _ = self._computed(name, options)
        chosen = time_column(name, frame.schema, by, [s.event_time or "" for s in sources])
        time = _time(frame, chosen) if chosen else F.lit(None).cast("timestamp")
        counted = frame.groupBy(F.date_trunc(period, time).alias("at")).count().orderBy("at")
        counts = [(row["at"], row["count"]) for row in counted.toArrow().to_pylist()]
        last = frame.orderBy(time.desc()).limit(rows).toArrow()
        cells = [column.to_pylist(maps_as_pydicts="strict") for column in last.columns]
        return Backtest(
            sum(count for _, count in counts),
            since,
            until,
            chosen,
            period,
            tuple((at.astimezone(UTC), count) for at, count in counts if at is not None),
            tuple(last.column_names),
            tuple(zip(*cells, strict=True)),
        )

    def _sources(self, name: str) -> tuple[Source, ...]:
        """Return the sources of an answer, all of which must have landed something."""
        graph = self._graph
        if name not in graph.datasets:
            known = graph.datasets
            raise fault(
                "UNKNOWN_DATASET", name=name, nearest=closest(name, known), known=listed(known)
            )
        if graph.datasets[name].kind == "source":
            raise fault("NOTHING_TO_BACKTEST", name=name, answers=listed(graph.downstream(name)))
        sources = tuple(s for s in graph.sources if s.name in graph.upstream(name))
        for source in sources:
            if source.live:
                raise fault("LIVE_IN_BATCH", at=source.at, source=source.name)
            if source.name not in self._home.tables:
                raise fault("NOTHING_LANDED", dataset=name, reads=source.name)
        return sources

    def _complete_us(self, sources: Sequence[Source]) -> float:
        """Return up to when rows are complete, so that nothing is computed too early."""
        frontier = least(
            facts_of(self._home.table(s.name)).frontier for s in sources if s.event_time
        )
        if frontier is None:
            return math.inf
        return of_watermark(0 if frontier == NOTHING_YET else watermark_ms(frontier))

    def _span(self, sources: Sequence[Source]) -> tuple[datetime | None, datetime | None]:
        """Return the times of the first and the last event."""
        ends: list[datetime] = []
        for source in sources:
            if source.event_time:
                time, rows = quoted(source.event_time), self._landed(source.name)
                [row] = rows.agg(F.min(time), F.max(time)).toArrow().to_pylist()
                ends += [moment.astimezone(UTC) for moment in row.values() if moment]
        return (min(ends), max(ends)) if ends else (None, None)

    def _computed(self, name: str, options: BuildOptions) -> tuple[DataFrame, int]:
        """Return the rows that a reader of a dataset sees, and by how much they are behind."""
        dataset, behind_us = self._graph.datasets[name], [0]
        if isinstance(dataset, Source):
            return self._landed(name), 0

        def read(name: str) -> DataFrame:
            frame, behind = self._computed(name, options)
            behind_us.append(behind)
            return frame

        built = build(self._graph, name, read, options)
        frame, behind = built.frame, max(*behind_us, built.behind_us)
        if isinstance(dataset, View) or dataset.mode in ("append", None):
            frame = _closed(frame, options.complete_us, behind)
        return (
            accepted_rows(frame, dataset.expect) if isinstance(dataset, Table) else frame
        ), behind


def _closed(frame: DataFrame, complete_us: float, behind_us: int) -> DataFrame:
    """Leave out rows of windows that a stream still keeps open, where rows have their window."""
    if complete_us == math.inf or not has_windows(frame):
        return frame
    if complete_us == -math.inf:
        return frame.limit(0)
    return frame.where(~is_beyond(frame, int(complete_us) - behind_us, if_unknown=False))


def suitable_period(since: datetime | None, until: datetime | None) -> str:
    """Choose a period to count by.

    >>> first = datetime(2026, 1, 1)
    >>> [suitable_period(first, first + timedelta(hours=h)) for h in (2, 20, 200)]
    ['minute', 'hour', 'day']
    """
    if since is None or until is None:
        return "day"
    for period, longer in (("minute", "hour"), ("hour", "day")):
        if until - since <= _FEW * PERIODS[longer]:
            return period
    return "day"


def time_column(
    name: str, schema: StructType, by: str | None, event_times: Sequence[str]
) -> str | None:
    """Choose the column whose time rows are counted by; None if there is none to choose from.

    Raises:
        BACKTEST_TIME: The column that is asked for is not a time.
    """
    windows = [f.name for f in schema.fields if _is_window(f.dataType)]
    times = [f.name for f in schema.fields if isinstance(f.dataType, TimestampType)]
    if by is not None:
        if by not in (*windows, *times):
            columns = (*windows, *times)
            offer = f"{closest(by, columns)}name one by --by COLUMN: {listed(columns)}"
            keep = "let the answer keep the event time of what it reads"
            instead = offer if columns else keep
            raise fault("BACKTEST_TIME", name=name, column=by, instead=instead)
        return by
    known = [column for column in times if column in event_times]
    return next(iter((*known, *windows, *times)), None)


def _is_window(kind: object) -> bool:
    return isinstance(kind, StructType) and "end" in kind.names


def _time(frame: DataFrame, column: str) -> Column:
    if _is_window(frame.schema[column].dataType):
        return quoted(column)["end"]
    return quoted(column)
