"""A scripted run of an app: what arrives when, where batches end, where the driver dies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from millstream.crash import armed, check_point
from millstream.errors import MillstreamError, NotDeterministicError, closest, fault, listed
from millstream.lake.compaction import FileSizes
from millstream.lake.lease import Lease
from millstream.lake.log import facts_of
from millstream.model.dataset import VERDICTS, Source
from millstream.model.duration import parse_duration
from millstream.model.graph import Graph
from millstream.model.query_options import QueryOptions
from millstream.model.trigger import Trigger
from millstream.plan import plan_fenced
from millstream.run.opening import RunnerOptions
from millstream.run.runner import Runner
from millstream.run.supervise import NEVER
from millstream.spark.clock import VirtualClock
from millstream.testing.arrival import Arrivals
from millstream.testing.frontier_check import frontier_faults
from millstream.testing.oracle import Oracle, rows_of
from millstream.testing.quick_settings import QUICK, WITHOUT_CHECKSUMS
from millstream.testing.standin import without_sinks
from millstream.testing.transcript import Transcript
from millstream.upkeep.maintain import Effort, Upkeep, UpkeepOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import Row, SparkSession

    from millstream.app import App
    from millstream.lake.home import Home
    from millstream.observe import Event
    from millstream.run.supervise import Supervised

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""What time it is when a script begins, unless it says otherwise."""

T = TypeVar("T")

_AT_START = ("home_taken", "table_taken")


class CrashError(Exception):
    """The driver dies here; nothing after this point is done."""


class ScriptTable:
    """A table as a script sees it."""

    def __init__(self, home: Home, name: str) -> None:
        self._home, self._name = home, name

    def rows(self, *columns: str) -> list[Row]:
        """All rows, sorted, with some of their columns or all; a Row equals the tuple it holds."""
        return rows_of(self._home, self._name, *columns)


class Script:
    """An app under a virtual clock, fed by hand, batch by batch; nothing happens by itself."""

    def __init__(
        self,
        app: App,
        home: Home,
        spark: SparkSession,
        *,
        now: datetime = NOON,
        is_scripted: bool = True,
        serves: bool = True,
    ) -> None:
        self._home, self._spark = home, _quick(spark.newSession())
        self._clock = VirtualClock(self._spark, now)
        self._runner: Runner | None = None
        self._lease: Lease | None = None
        self._waiting: dict[str, list[str]] = {}
        self._ticked: dict[str, datetime] = {}
        self.events: list[Event] = []
        """Events of the run, as `millstream run` would print them."""
        self.transcript = Transcript("" if now == NOON else f", now={now!r}")
        self._is_scripted, self._serves = is_scripted, serves
        self._graph = self._scripted(app)

    @property
    def now(self) -> datetime:
        """What time it is in the script."""
        return self._clock.now

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._abandon()

    def send(self, source: str, /, *records: str, **columns: Any) -> None:
        """Have records arrive, raw or as one row by its columns; the next batch reads them.

        Times of day such as "12:00:03" are of the script's day, in UTC.
        """
        dataset = self._source(source)
        lines = list(records)
        if columns:
            arrivals = dataset.connector
            assert isinstance(arrivals, Arrivals)
            lines.append(arrivals.record(dataset, columns, self.now.date()))
        self._waiting.setdefault(source, []).extend(lines)
        self.transcript.sent(source, records, columns)

    def batch(self) -> None:
        """End a micro-batch: what was sent lands, and every query whose trigger is due follows."""
        self.transcript.did("batch()")
        self._process("batch", everything=False)

    def maintain(self) -> None:
        """Compact small files and delete what is no longer kept, as a run does by itself."""
        self.transcript.did("maintain()")
        runner, lease = self._runner, self._lease
        assert runner is not None
        assert lease is not None
        small = UpkeepOptions(sizes=FileSizes(together=2, merged=0))
        for _ in Upkeep(self._graph, lease, runner.queries, small).steps(Effort.WHOLE):
            continue

    def drain(self) -> None:
        """Process all that is left, whatever the triggers say."""
        self.transcript.did("drain()")
        self._process("drain", everything=True)

    def advance(self, by: str | timedelta) -> None:
        """Let time pass, all at once; timers and triggers that fall due act in the next batch."""
        try:
            passed = parse_duration(by) if isinstance(by, str) else by
        except ValueError:
            raise fault("CLOCK_BACKWARDS", by=str(by)) from None
        if passed < timedelta():
            raise fault("CLOCK_BACKWARDS", by=str(by))
        self._clock.advance(passed)
        self.transcript.did(f"advance({str(by)!r})")

    def crash(self, *, after: str | None = None, query: str | None = None) -> None:
        """Kill the driver: between batches, or in the next one right after a named point.

        Args:
            after: One of `millstream.crash.POINTS`.
            query: Whose batch it is; by default the first that reaches the point.

        Raises:
            UNKNOWN_CRASH_POINT: There is no such point.
            CrashNotReachedError: No batch reached it.
        """
        if after is not None:
            check_point(after)
            named = f", query={query!r}" if query else ""
            self.transcript.did(f"crash(after={after!r}{named})")
            self._die_after(after, query)
        else:
            self.transcript.did("crash()")
        self._abandon()

    def restart(self) -> None:
        """Start the driver again where the last one ended; a living one is stopped first."""
        self.transcript.did("restart()")
        self._abandon()
        self._open()

    def run_once(self) -> None:
        """Stop, run as `millstream run --once` does, and continue as a stream."""
        self.transcript.did("run_once()")
        runner = self._alive("run_once")
        self._hand_over()
        self._abandon()
        runner = self._open(once=True)
        runner.run_once(lambda: True)
        runner.raise_if_stopped_for_good()
        self._abandon()
        self._open()

    def upgrade_to(self, app: App) -> None:
        """Continue with another version of the app, on the same home."""
        self.transcript.did("upgrade_to(app)")
        self._abandon()
        self._graph = self._scripted(app)
        self._open()

    def table(self, name: str) -> ScriptTable:
        """A table, a quarantine or a landed source, to look at."""
        if name not in self._home.tables:
            raise self._unknown("table", name, self._home.tables)
        return ScriptTable(self._home, name)

    def verdicts(self, source: str) -> dict[str, int]:
        """How many rows of a source have which verdict."""
        self._source(source)
        totals = facts_of(self._home.table(source)).totals
        return {verdict: totals[verdict] for verdict in VERDICTS if totals.get(verdict)}

    def assert_consistent(self) -> None:
        """Check every table against the batch answer over what has landed.

        Raises:
            NOT_PREFIX_CONSISTENT: A table differs.
            NotDeterministicError: A function gives other rows for the same rows.
        """
        self.transcript.did("assert_consistent()")
        if found := self._with_script(Oracle.differences):
            raise fault(
                "NOT_PREFIX_CONSISTENT",
                differences="\n  ".join(map(str, found)),
                script=self.transcript.as_test(),
            )

    def assert_frontiers(self) -> None:
        """Check the frontiers of all versions: none went back, and no row is behind one.

        Raises:
            NOT_PREFIX_CONSISTENT: A table was not as complete as its frontier.
        """
        self.transcript.did("assert_frontiers()")
        found = [each for name in self._home.tables for each in frontier_faults(self._home, name)]
        if found:
            raise fault(
                "NOT_PREFIX_CONSISTENT",
                differences="\n  ".join(found),
                script=self.transcript.as_test(),
            )

    def assert_deterministic(self) -> None:
        """Check that every table has the same rows for the same input, in any order of arrival.

        Raises:
            NotDeterministicError: A function gives other rows for the same rows.
        """
        self.transcript.did("assert_deterministic()")
        self._with_script(Oracle.check_determinism)

    def _with_script(self, judge: Callable[[Oracle], T]) -> T:
        try:
            return judge(Oracle(self._graph, self._spark, self._home))
        except NotDeterministicError as error:
            raise fault(
                "NOT_DETERMINISTIC",
                at=error.at,
                table=error.facts["table"],
                one=error.facts["one"],
                other=error.facts["other"],
                shown=f"\nThis script shows it:\n\n{self.transcript.as_test()}",
            ) from None

    def _process(self, verb: str, *, everything: bool) -> None:
        runner = self._alive(verb)
        self._hand_over()
        runner.drain(lambda supervised: everything or self._is_due(supervised))

    def _is_due(self, supervised: Supervised) -> bool:
        trigger, name = supervised.trigger, supervised.query.name
        if trigger.kind == "default":
            return True
        last = self._ticked.get(name)
        waits = trigger.interval is None or (last and self.now < last + trigger.interval)
        if last is not None and waits:
            return False
        self._ticked[name] = self.now
        return True

    def _unknown(self, kind: str, name: str, known: Iterable[str]) -> MillstreamError:
        return fault(
            "UNKNOWN_IN_SCRIPT",
            owner=f"app {self._graph.app!r}",
            kind=kind,
            name=name,
            nearest=closest(name, known),
            known=listed(known),
        )

    def _die_after(self, point: str, query: str | None) -> None:
        runner = self._alive("crash")
        if query is not None and query not in (names := [q.query.name for q in runner.queries]):
            raise self._unknown("query", query, names)
        passed: dict[str, None] = {}

        def look(here: str, reached_by: str, batch: int) -> None:  # noqa: ARG001
            passed[f"{here} of {reached_by}" if reached_by else here] = None
            if here == point and query in (None, reached_by):
                raise CrashError

        self._hand_over()
        with armed(self._home.path, look):
            try:
                if point in _AT_START:
                    self._abandon()
                    self._open()
                else:
                    runner.drain()
            except CrashError:
                return
        raise fault(
            "CRASH_NOT_REACHED",
            point=point,
            whose=f" of {query!r}" if query else "",
            passed=listed(passed),
        )

    def _alive(self, verb: str) -> Runner:
        if self._runner is None:
            raise fault("DRIVER_DEAD", verb=verb)
        return self._runner

    def _hand_over(self) -> None:
        for source, lines in self._waiting.items():
            arrivals = self._source(source).connector
            assert isinstance(arrivals, Arrivals)
            arrivals.memory.add(*lines)
        self._waiting.clear()

    def _open(self, *, once: bool = False) -> Runner:
        graph = self._graph
        self._home.prepare(graph.app, sources=[s.name for s in graph.sources if not s.live])
        try:
            self._lease = Lease.acquire(self._home)
            trigger = Trigger("once") if once else None
            clock = self._clock
            options = RunnerOptions(
                trigger,
                NEVER,
                fail_fast=True,
                launch=clock.start,
                now=lambda: clock.now,
                upkeep=UpkeepOptions(unasked=False),
            )
            runner = Runner(
                graph, plan_fenced(graph), self._spark, self._lease, options, self.events.append
            )
        except BaseException:
            self._abandon()
            raise
        self._runner, self._ticked = runner, {}
        return runner

    def _abandon(self) -> None:
        if self._runner is not None:
            self._runner.stop()
        if self._lease is not None:
            self._lease.release()
        self._runner = self._lease = None

    def _source(self, name: str) -> Source:
        sources = {source.name: source for source in self._graph.sources}
        if name not in sources:
            raise self._unknown("source", name, sources)
        return sources[name]

    def _scripted(self, app: App) -> Graph:
        app.raise_faults(places=not self._is_scripted)
        graph = app.graph if self._serves else without_sinks(app.graph)
        if not self._is_scripted:
            return graph
        return Graph(
            graph.app,
            tuple(Arrivals.instead_of(d) if isinstance(d, Source) else d for d in graph.declared),
            QueryOptions(keep_versions=graph.options.keep_versions),
        )


def _quick(spark: SparkSession) -> SparkSession:
    """Set what makes tests fast; a home keeps the number of partitions it began with."""
    for key, value in (QUICK | WITHOUT_CHECKSUMS).items():
        spark.conf.set(key, value)
    return spark
