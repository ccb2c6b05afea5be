"""Why nothing more has come out of a dataset: what it waits for, and how long that may take."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from millstream.checkpoint import WAITING, CheckpointLog
from millstream.errors import closest, fault, listed
from millstream.lake.frontier import frontier_of, frontier_to_reach, moment, watermark_ms
from millstream.lake.lease import holder_of
from millstream.lake.log import commits, facts_of
from millstream.model.connector import Following
from millstream.model.dataset import Serve, Source, Table, View
from millstream.model.duration import UNIX_EPOCH, parse_duration
from millstream.plan.windows import windows_of
from millstream.views.status import StandingView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.lake.home import Home
    from millstream.lake.lease import Holder
    from millstream.lake.log import Commit
    from millstream.model.graph import Graph
    from millstream.plan.windows import Window

_IDLE = "10 minutes"
"""What is advised to a source that is quiet."""
_COMMITS = 20
"""How many commits of a source its speed is computed from."""


@dataclass(frozen=True, slots=True)
class SourceTimeView:
    """How far a source is in time."""

    name: str
    state: str
    watermark: str | None
    """How far behind its greatest event time it is complete, as declared."""
    idle: str | None
    """How long without rows until the clock moves its watermark."""
    complete_to: datetime | None = None
    greatest_event_time: datetime | None = None
    last_rows_at: datetime | None = None
    """When rows came last."""
    quiet_since: datetime | None = None
    """Since when the clock moves its watermark; None while rows do."""
    speed: float | None = None
    """Seconds of event time that pass in a second, over its last batches; None if unknown."""

    @staticmethod
    def of(home: Home, source: Source) -> SourceTimeView:
        """Read the state of a source."""
        standing = StandingView.of(home, source.name, source)
        if standing.state != "ran":
            last = list(itertools.islice(commits(home.table(source.name)), 1))
            facts = last[0].facts if last and not source.live else None
            complete_to = moment(facts.frontier) if facts else None
            return SourceTimeView(
                source.name, standing.state, source.watermark, source.idle, complete_to
            )
        seen = list(itertools.islice(commits(home.table(source.name)), _COMMITS))
        facts = next(commit.facts for commit in seen if commit.facts)
        with_rows = [c for c in seen if c.is_batch and c.facts and c.facts.changed == c.facts.batch]
        return SourceTimeView(
            source.name,
            standing.state,
            source.watermark,
            source.idle,
            complete_to=standing.complete_to,
            greatest_event_time=moment(facts.greatest_event_time),
            last_rows_at=with_rows[0].at if with_rows else None,
            quiet_since=moment(facts.quiet_since),
            speed=speed_of(with_rows),
        )


@dataclass(frozen=True, slots=True)
class ClosingView:
    """The next window to be final, or the wait of what began with the last event."""

    kind: Literal["window", "wait"]
    length: timedelta
    ends: datetime
    needs: datetime
    """The event time that a row of the source that holds it must have, at least."""
    by_rows_at: datetime | None
    """When such a row is to be expected, at the speed of late; None if that is not known."""
    by_clock_at: datetime | None
    """When it is final without such a row, if the source says when it is idle."""


@dataclass(frozen=True, slots=True)
class WhyView:
    """What a dataset waits for."""

    app: str
    name: str
    kind: str
    mode: str | None
    state: str
    driver: Holder | None
    now: datetime
    complete_to: datetime | None
    rows: int
    """Rows written by all batches, or right ones of a source."""
    held_by: str | None
    """The source that is complete to the least moment; None if no source is known to be."""
    sources: tuple[SourceTimeView, ...]
    """Those it is made from that have an event time, or that are live."""
    timeless: tuple[str, ...]
    """Sources it is made from that have no event time."""
    closing: tuple[ClosingView, ...]
    advised_idle: str | None
    """What `idle` of the source that holds it would help; None if it would not."""

    @staticmethod
    def of(home: Home, graph: Graph, name: str, *, now: datetime | None = None) -> WhyView:
        """Read the state of a dataset of an app.

        Raises:
            UNKNOWN_DATASET: The app declares none of this name.
        """
        if name not in graph.datasets:
            known = graph.datasets
            raise fault(
                "UNKNOWN_DATASET", name=name, nearest=closest(name, known), known=listed(known)
            )
        dataset = graph.datasets[name]
        made_from = {name, *graph.upstream(name)}
        among = [source for source in graph.sources if source.name in made_from]
        sources = tuple(SourceTimeView.of(home, s) for s in among if s.event_time or s.live)
        holder = slowest(sources)
        if isinstance(dataset, View):
            state, rows, complete_to = "inlined", 0, None
        else:
            standing = StandingView.of(home, name, dataset)
            state, rows, complete_to = standing.state, standing.total, standing.complete_to
        is_closed = isinstance(dataset, Table | Serve) and dataset.mode in ("append", None)
        next_of = closing_of if is_closed else final_of
        reached = complete_to or _watermark(home, name)
        if reached is None and holder and (reached := holder.complete_to) and is_closed:
            reached = _watermark_at(reached)
        found = windows_of(graph, name)
        closing = [next_of(w, reached, holder) for w in found if reached and holder]
        if complete_to and holder and (waits := _waits(home, name)):
            closing += waiting_of(waits, complete_to, holder)
        driver, now = holder_of(home), now or datetime.now(UTC)
        could_idle = {s.name for s in among if not isinstance(s.connector, Following)}
        is_asked = holder and driver and holder.name in could_idle
        return WhyView(
            graph.app,
            name,
            dataset.kind,
            dataset.mode if isinstance(dataset, Table) else None,
            state,
            driver,
            now,
            complete_to=complete_to,
            rows=rows,
            held_by=holder.name if holder else None,
            sources=sources,
            timeless=tuple(s.name for s in among if not s.event_time),
            closing=tuple(closing),
            advised_idle=advised_idle(holder, now) if holder and is_asked else None,
        )


def slowest(sources: Sequence[SourceTimeView]) -> SourceTimeView | None:
    """Find the source that holds the others back: one of which nothing is complete, or the least.

    A live source is not known to hold anything back.
    """
    landed = [source for source in sources if source.state != "live"]
    first = datetime.min.replace(tzinfo=UTC)
    return min(landed, key=lambda s: s.complete_to or first, default=None)


def speed_of(batches: Sequence[Commit]) -> float | None:
    """Return how many seconds of event time pass in a second; the last batch comes first."""
    seen = [(b.at, b.facts.greatest_event_time) for b in batches if b.facts]
    points = [(at, greatest) for at, greatest in seen if greatest is not None]
    if len(points) < 2:
        return None
    (last, latest), (first, earliest) = points[0], points[-1]
    passed = (last - first).total_seconds()
    return (latest - earliest) / 1_000_000 / passed if passed > 0 else None


def advised_idle(source: SourceTimeView, now: datetime) -> str | None:
    """Return what `idle` would help a source that is quiet; None if it is not, or it would not.

    The clock makes rows late that come longer after their event than `idle` and the watermark
    allow, as history does that is replayed.
    """
    came, event = source.last_rows_at, source.greatest_event_time
    if source.idle or source.watermark is None or came is None or event is None:
        return None
    idle = parse_duration(_IDLE)
    is_quiet = now - came >= idle
    return _IDLE if is_quiet and came - event <= idle + parse_duration(source.watermark) else None


def closing_of(window: Window, reached: datetime, holder: SourceTimeView) -> ClosingView:
    """Return what makes the next window come: Spark closes it once its watermark is at the end."""
    ends = window.first_end_after(reached)
    return _closing("window", window.length, ends, _complete_to_close(ends), holder)


def final_of(window: Window, reached: datetime, holder: SourceTimeView) -> ClosingView:
    """Return what makes the next window of an updated table final: any further row is late."""
    ends = window.first_end_after(reached)
    return _closing("window", window.length, ends, ends, holder)


def waiting_of(
    longest: timedelta, complete_to: datetime, holder: SourceTimeView
) -> Iterator[ClosingView]:
    """Return what ends the wait for what may follow the last event, if that waits."""
    if holder.greatest_event_time and complete_to < holder.greatest_event_time:
        ends = holder.greatest_event_time + longest
        yield _closing("wait", longest, ends, _complete_to_close(ends), holder)


def _closing(
    kind: Literal["window", "wait"],
    length: timedelta,
    ends: datetime,
    complete_to: datetime,
    holder: SourceTimeView,
) -> ClosingView:
    needs = complete_to + parse_duration(holder.watermark or "0 s")
    by_rows = None
    if holder.speed and holder.last_rows_at and holder.greatest_event_time:
        seconds = (needs - holder.greatest_event_time).total_seconds() / holder.speed
        by_rows = holder.last_rows_at + timedelta(seconds=max(seconds, 0))
    by_clock = None
    if holder.idle:
        by_clock = max(needs, holder.last_rows_at or needs) + parse_duration(holder.idle)
    return ClosingView(kind, length, ends, needs, by_rows, by_clock)


def _complete_to_close(ends: datetime) -> datetime:
    """Return how far a source must be complete for Spark to close what ends at a moment."""
    return UNIX_EPOCH + timedelta(microseconds=frontier_to_reach(frontier_of(ends)))


def _watermark_at(complete_to: datetime) -> datetime:
    """Return where Spark's watermark will be in a query that has read a source so far."""
    return UNIX_EPOCH + timedelta(milliseconds=watermark_ms(frontier_of(complete_to)))


def _waits(home: Home, name: str) -> timedelta | None:
    """Return for how long, beyond the watermark, a query keeps a row for what may follow it."""
    log, facts = CheckpointLog(home.checkpoint(name)), facts_of(home.table(name))
    if facts.frontier is None or WAITING.isdisjoint(log.operators):
        return None
    if not 0 <= facts.batch <= log.planned:
        return None
    return timedelta(
        milliseconds=log.offsets(facts.batch).watermark_ms, microseconds=-facts.frontier
    )


def _watermark(home: Home, name: str) -> datetime | None:
    """Return where the watermark of a query is, of whose answer the frontier is not known."""
    watermark_ms = CheckpointLog(home.checkpoint(name)).watermark_ms
    return moment(watermark_ms * 1000) if watermark_ms else None
