"""A running application: its queries opened in order, supervised, and stopped between batches."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from millstream.build.failure import explain, is_python_late
from millstream.checkpoint import CheckpointLog
from millstream.errors import OvertakenError, fault, listed
from millstream.lake.failed_queries import Trouble, record_troubles
from millstream.lake.log import facts_of
from millstream.landing.inbox import Inbox
from millstream.model.connector import Receiving
from millstream.model.dataset import Source
from millstream.model.trigger import Trigger
from millstream.observe import Event
from millstream.run.alerts import Alerts
from millstream.run.changed_files import ChangedFiles
from millstream.run.file_batches import has_files_to_read_again
from millstream.run.idle import IdleSources
from millstream.run.opening import Opening
from millstream.run.reception import Reception
from millstream.run.references import is_outdated
from millstream.run.slots import check_task_slots
from millstream.run.supervise import Supervised
from millstream.spark.jobs import long_jobs
from millstream.upkeep.maintain import BackgroundUpkeep, Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from millstream.errors import MillstreamError
    from millstream.lake.lease import Lease
    from millstream.model.graph import Graph
    from millstream.observe.record import EventRecord
    from millstream.plan import Query
    from millstream.run.opening import RunnerOptions
    from millstream.spark.jobs import LongJob

_LOOK_EVERY_S = 0.02
_TRIES = 4
"""How often a Python worker may start late in a script, on a busy machine."""


class Runner:
    """All queries of a run, open; nothing is started yet."""

    def __init__(
        self,
        graph: Graph,
        queries: Sequence[Query],
        spark: SparkSession,
        lease: Lease,
        options: RunnerOptions,
        on_event: Callable[[Event], None],
    ) -> None:
        """Reach the sources, check every answer against its table, and fence off earlier drivers.

        Raises:
            MillstreamError: Something does not fit; nothing was started.
        """
        self._graph, self._lease, self._spark = graph, lease, spark
        self._home, self._options, self._on_event = lease.home, options, on_event
        self._opening = opening = Opening(graph, spark, lease, options, on_event)
        self._files = ChangedFiles(queries, lease.home, on_event)
        self._idle = IdleSources(options.now)
        self._receptions: list[Reception] = []
        self._troubles: dict[str, Trouble] | None = None
        self.queries: list[Supervised] = []
        upkeep = Upkeep(graph, lease, self.queries, options.upkeep, on_event)
        self._upkeep = BackgroundUpkeep(upkeep, lease.home)
        try:
            for query in queries:
                self._open(query)
            check_task_slots(self.queries, opening.read_directly, spark)
            self._alerts = Alerts.open(graph, lease, on_event, queries)
        except BaseException:
            opening.close()
            raise

    def _open(self, query: Query) -> None:
        opening = self._opening
        running = opening.open(query)
        self.queries.append(Supervised(query, running, opening.trigger(query)))
        if isinstance(query.dataset, Source):
            log = CheckpointLog(self._home.checkpoint(query.name))
            self._idle.add(opening.landings[query.name], query.dataset, log)

    def long_jobs(self) -> tuple[LongJob, ...]:
        """Return the jobs that run now and have run for some seconds."""
        return long_jobs(self._spark)

    def start(self) -> None:
        """Start the queries that have something to read; `watch` starts the others in time."""
        for supervised in self.queries:
            self._look_after(supervised)
            self._receive(supervised.query)
        self._alerts.start()
        self._upkeep.start()

    def watch(self) -> None:
        """Look after the queries once: restart, give up, or leave alone.

        Raises:
            OvertakenError: Another driver has taken over the home.
        """
        self._lease.hold()
        for supervised in self.queries:
            self._look_after(supervised)
            self._idle.look_after(supervised)
        self._record_troubles()
        self._files.look()

    def run_once(self, keep_on: Callable[[], bool]) -> None:
        """Run every query until nothing is left for it, each after those it reads from."""
        self._alerts.start()
        for supervised in self.queries:
            if supervised.is_over or self._is_cut_short or not keep_on():
                continue
            if not self._has_input(supervised.query):
                supervised.finish()
                continue
            self._start(supervised)
            while not supervised.is_over and keep_on():
                time.sleep(_LOOK_EVERY_S)
                self._lease.hold()
                self._look_after(supervised)
                self._record_troubles()
            if supervised.state == "finished":
                self._idle.settle(supervised)
        self._alerts.finish(keep_on)
        self._files.look(now=True)
        if keep_on():
            self._upkeep.finish(keep_on)

    def drain(self, due: Callable[[Supervised], bool] = lambda _: True) -> None:
        """Have every query that is due process what is there, each after those it reads from.

        Raises:
            BaseException: What a query died of.
        """
        for supervised in self.queries:
            # Before another query writes rows that it would process with the old reference data.
            if is_outdated(supervised.running, now=True):
                supervised.running.stop()
        for supervised in self.queries:
            if not self._has_input(supervised.query) or not due(supervised):
                continue
            _drain(supervised)
            self._idle.settle(supervised)
        self._alerts.drain()

    @property
    def notify(self) -> Callable[[Sequence[EventRecord]], bool]:
        """Reports to the destinations of the app which objectives are not met, or met again."""
        return self._alerts.notify

    def stop(self) -> None:
        """Let every running batch finish, then stop."""
        self._upkeep.close()
        for reception in self._receptions:
            reception.close()
        for supervised in self.queries:
            supervised.running.ask_to_stop()
        for supervised in self.queries:
            supervised.running.stop()
            if supervised.error is not None and supervised.trouble == "restarting":
                self._give_up(supervised, supervised.error)
            supervised.stop()
        self._record_troubles()
        self._opening.close()
        self._alerts.close()
        self._files.look(now=True)

    def raise_if_stopped_for_good(self) -> None:
        """Raise what stopped queries died of.

        Raises:
            MillstreamError: The only fault there is.
            QUERY_STOPPED: There are several.
        """
        failed = [s for s in self.queries if s.state == "failed"]
        stale = [s.query.name for s in self.queries if s.is_stale]
        if len(failed) == 1 and failed[0].error is not None and not stale:
            raise failed[0].error
        if failed:
            names = [supervised.query.name for supervised in failed]
            raise fault(
                "QUERY_STOPPED",
                names=listed(names),
                stale=f"; stale because of it: {listed(stale)}" if stale else "",
            ) from failed[0].error

    @property
    def is_over(self) -> bool:
        """Whether no query will do anything more, or the first failure is to stop all."""
        return self._is_cut_short or all(s.is_over or s.is_stale for s in self.queries)

    @property
    def _is_cut_short(self) -> bool:
        return self._options.fail_fast and any(s.state == "failed" for s in self.queries)

    def _start(self, supervised: Supervised) -> None:
        try:
            supervised.running.start(supervised.trigger)
        except Exception as error:
            self._failed(supervised, error)
        else:
            supervised.begin()
            self._on_event(Event("started", supervised.query.name))

    def _receive(self, query: Query) -> None:
        source = query.dataset
        if isinstance(source, Source) and isinstance(source.connector, Receiving):
            opening, place = self._opening, self._home.connector(source.name)
            sink, room = opening.landings[source.name], opening.rooms[source.name]
            epoch = self._lease.epoch
            inbox = Inbox(place, epoch=epoch, landed=lambda: sink.greatest_origin, room=room)
            opening.inboxes[source.name] = inbox
            self._receptions.append(Reception(source, inbox, self._options.restart, self._on_event))

    def _look_after(self, supervised: Supervised) -> None:
        if supervised.state == "waiting" and self._has_input(supervised.query):
            self._start(supervised)
        if supervised.state == "restarting" and time.monotonic() >= supervised.retry_at:
            self._start(supervised)
        if supervised.state == "running" and is_outdated(supervised.running):
            supervised.running.stop()
            self._on_event(Event("renewed", supervised.query.name))
            self._start(supervised)
        if supervised.state == "running" and has_files_to_read_again(supervised.running):
            supervised.running.stop()
            self._start(supervised)
        if supervised.state != "running" or supervised.running.is_active:
            return
        failure = supervised.running.failure
        if failure is not None:
            self._failed(supervised, failure)
        elif supervised.finish() or supervised.error is None:
            self._on_event(Event("finished", supervised.query.name))
        else:
            self._give_up(supervised, supervised.error)

    def _has_input(self, query: Query) -> bool:
        """Whether anything it reads has rows; to start earlier takes time and has no effect."""
        running = {s.query.name: s.running for s in self.queries}
        stored = [name for name in query.after if name in self._home.tables]
        return (
            len(stored) < len(query.after)
            or not query.after
            or any(
                (running[n].facts if n in running else facts_of(self._home.table(n))).changed >= 0
                for n in stored
            )
        )

    def _failed(self, supervised: Supervised, failure: BaseException) -> None:
        # A driver without its home, or one that was overtaken, does not look for another cause.
        self._lease.hold()
        name = supervised.query.name
        error = explain(failure, query=name, at=supervised.query.dataset.at, home=self._home)
        if isinstance(error, OvertakenError):
            raise error
        if supervised.fail(error, self._options.restart):
            pause = max(supervised.retry_at - time.monotonic(), 0)
            self._on_event(Event("restarting", name, f"again in {pause:.0f} s", error))
            return
        self._give_up(supervised, error)

    def _give_up(self, supervised: Supervised, error: MillstreamError) -> None:
        name = supervised.query.name
        supervised.give_up()
        self._on_event(Event("query_failed", name, error=error))
        for other in self.queries:
            if other.query.name in self._graph.downstream(name) and other.become_stale():
                self._on_event(Event("stale", other.query.name, f"because {name!r} stopped"))

    def _record_troubles(self) -> None:
        """Record in the home which queries are in trouble, for `millstream status`."""
        found = {s.query.name: trouble for s in self.queries if (trouble := _trouble_of(s))}
        if found != self._troubles:
            # On a full disk it is tried again at the next look; what failed is reported either way.
            with suppress(OSError):
                record_troubles(self._home, [s.query.name for s in self.queries], found)
                self._troubles = found


def _trouble_of(supervised: Supervised) -> Trouble | None:
    if (state := supervised.trouble) is None:
        return None
    error = supervised.error
    if error is None:
        fix = "`millstream status` shows what failed; the next run continues from there"
        return Trouble(state, "QUERY_STOPPED", "a dataset that it reads has failed", fix)
    file, line = (error.at.file, error.at.line) if error.at else (None, None)
    return Trouble(state, error.code, error.what, error.fix, file, line)


def _drain(supervised: Supervised) -> None:
    """Have a query process what is there; one with an interval then ends."""
    running, is_default = supervised.running, supervised.trigger.kind == "default"
    for left in reversed(range(_TRIES)):
        if not running.is_active and supervised.query.kind != "recompute":
            running.start(supervised.trigger if is_default else Trigger("once"))
        try:
            running.drain()
        except PySparkException as error:
            if not left or not is_python_late(error):
                raise
            running.stop()
        else:
            return
