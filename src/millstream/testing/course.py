"""Courses of a run: what arrives and what crashes, chosen by Hypothesis so that it can shrink."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from millstream.crash import POINTS
from millstream.errors import CrashNotReachedError, closest, fault, listed
from millstream.model.duration import parse_duration
from millstream.plan import plan_fenced
from millstream.testing.arrival import EVENT_TIME, on_day
from millstream.testing.script import NOON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from millstream.model.dataset import Source
    from millstream.model.graph import Graph
    from millstream.testing.script import Script

    Record = Mapping[str, Any] | str
    Rows = Mapping[str, Sequence[Record]]

_MOST_BATCHES = 3
_ANY_DELAY = timedelta(minutes=10)
"""For a source without a watermark, whose rows are never late."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record, and when it is due."""

    source: str
    record: Record
    due: datetime


@dataclass(frozen=True, slots=True)
class CourseStep:
    """Records that arrive together, and what happens then."""

    arrivals: tuple[Arrival, ...]
    end: str = "batch"
    """`batch`, `restart`, `once`, `crash`, or a crash point."""
    query: str | None = None
    wait: timedelta = timedelta()
    """How much time passes before."""

    def play(self, script: Script) -> None:
        """Do it in a script."""
        if self.wait:
            script.advance(self.wait)
        self.send(script)
        if self.end in POINTS:
            self._crash(script)
        elif self.end == "once":
            script.run_once()
            return
        script.batch()
        if self.end == "crash":
            script.crash()
        if self.end in ("crash", "restart"):
            script.restart()

    def send(self, script: Script) -> None:
        """Have the records arrive, and no more."""
        for arrival in self.arrivals:
            if isinstance(arrival.record, str):
                script.send(arrival.source, arrival.record)
            else:
                script.send(arrival.source, **arrival.record)

    def _crash(self, script: Script) -> None:
        try:
            script.crash(after=self.end, query=self.query)
        except CrashNotReachedError:
            # Not every query reaches every point; then it was a batch like any other.
            script.transcript.replace_last("drain()")
        else:
            script.restart()


@dataclass(frozen=True, slots=True)
class Course:
    """One run: steps, one after another."""

    steps: tuple[CourseStep, ...]

    def play(self, script: Script) -> None:
        """Do it; check the tables after every step, and the frontiers at the end."""
        for step in self.steps:
            step.play(script)
            if step is self.steps[-1]:
                script.drain()
            script.assert_consistent()
        script.assert_frontiers()


def arrivals_of(graph: Graph, rows: Rows | Sequence[Record]) -> tuple[Arrival, ...]:
    """Return the rows as arrivals, each due at its event time.

    Raises:
        ROWS_OF_NO_SOURCE: The rows do not name their source.
        UNKNOWN_IN_SCRIPT: The app has no such source.
    """
    sources = {source.name: source for source in graph.sources}
    if not isinstance(rows, dict):
        if len(sources) != 1:
            raise fault(
                "ROWS_OF_NO_SOURCE",
                app=graph.app,
                count=len(sources),
                sources=listed(sources),
            )
        rows = {next(iter(sources)): rows}  # type: ignore[dict-item]
    for name in rows:
        if name not in sources:
            raise fault(
                "UNKNOWN_IN_SCRIPT",
                owner=f"app {graph.app!r}",
                kind="source",
                name=name,
                nearest=closest(name, sources),
                known=listed(sources),
            )
    return tuple(Arrival(n, record, _due(sources[n], record)) for n in rows for record in rows[n])


def begin(arrivals: Sequence[Arrival]) -> datetime:
    """When a run begins: late enough for no row to be in the future."""
    latest = max((arrival.due for arrival in arrivals), default=NOON)
    return NOON if latest.date() == NOON.date() else latest


def courses(graph: Graph, arrivals: Sequence[Arrival]) -> SearchStrategy[Course]:
    """Choose records, their order within the watermark, where batches end, and what happens."""
    queries = tuple(query.name for query in plan_fenced(graph))
    delays = {source.name: _allowed(source) for source in graph.sources}
    waits = _waits(graph)

    @st.composite
    def choose(draw: DrawFn) -> Course:
        count = draw(st.integers(1, len(arrivals)))
        first = draw(st.integers(0, len(arrivals) - count))
        order: list[tuple[datetime, Arrival]] = []
        for arrival in arrivals[first : first + count]:
            delay = timedelta(seconds=draw(st.integers(0, delays[arrival.source])))
            comes_twice = draw(st.integers(0, 9)) == 9
            order += [(arrival.due + delay, arrival)] * (2 if comes_twice else 1)
        order.sort(key=lambda pair: pair[0])
        cuts = draw(st.sets(st.integers(1, len(order)), max_size=_MOST_BATCHES - 1))
        bounds = sorted({0, len(order), *cuts})
        parts = [[arrival for _, arrival in order[a:b]] for a, b in pairwise(bounds)]
        steps = [_step(draw, part, queries) for part in parts]
        if waits:
            steps = [replace(step, wait=draw(st.sampled_from(waits))) for step in steps]
        return Course(tuple(steps))

    return choose()


def _step(draw: DrawFn, part: Sequence[Arrival], queries: Sequence[str]) -> CourseStep:
    # The plain end is the one that failures shrink to.
    end = draw(st.sampled_from(["batch", "batch", "batch", "restart", "once", "crash", *POINTS]))
    query = None
    if end in POINTS and end != "home_taken":
        query = draw(st.sampled_from([None, *queries]))
    return CourseStep(tuple(part), end, query)


def _waits(graph: Graph) -> list[timedelta]:
    """Return how much time may pass at a step; nothing if no source has an idle clock."""
    idle = [parse_duration(source.idle) for source in graph.sources if source.idle]
    return [timedelta(), timedelta(), *(1.5 * length for length in idle)] if idle else []


def _allowed(source: Source) -> int:
    """Return how many seconds after its event time a row may arrive without being late."""
    watermark = parse_duration(source.watermark) if source.watermark else _ANY_DELAY
    return int(watermark.total_seconds())


def _due(source: Source, record: Record) -> datetime:
    if isinstance(record, str):
        return NOON
    name = source.event_time if source.event_time in record else EVENT_TIME
    moment = on_day(record.get(name or EVENT_TIME), NOON.date())
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if not isinstance(moment, datetime):
        return NOON
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
