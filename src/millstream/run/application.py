"""One run of an application, from the lock on its home to the last committed batch."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from py4j.protocol import Py4JError

from millstream import check
from millstream.build.failure import lost_driver, translating_full_disk
from millstream.errors import OvertakenError, fault, raise_faults
from millstream.lake.lease import Lease, holder_of
from millstream.model.trigger import TRIGGERS, Trigger
from millstream.observe import Event
from millstream.observe.recorder import Recorder
from millstream.observe.run_record import run_record
from millstream.plan import plan
from millstream.run.opening import RunnerOptions
from millstream.run.runner import Runner
from millstream.run.supervise import DEFAULT, NEVER
from millstream.spark.report import silent
from millstream.spark.session import log_of_jvm, warm_up
from millstream.upkeep.maintain import UpkeepOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.lake.home import Home
    from millstream.model.graph import Graph
    from millstream.run.supervise import Supervised
    from millstream.spark.jobs import LongJob
    from millstream.spark.report import Report

_LOOK_EVERY_S = 0.1
_JVM_ENDS_WITHIN_S = 2.0


class RunOptions(TypedDict, total=False):
    """How to run: what the command line offers too."""

    profile: str
    """A profile of millstream.toml."""
    home: str | Path
    master: str
    once: bool
    """Stop when nothing is left."""
    trigger: str
    select: str | Sequence[str]
    exclude: str | Sequence[str]
    takeover: bool
    fail_fast: bool
    maintain: bool
    """Whether the run maintains its tables without a request; it does, if not said otherwise."""


class ApplicationRun:
    """An application with its home locked, its session open and its queries ready."""

    def __init__(self, lease: Lease, runner: Runner, recorder: Recorder, *, once: bool) -> None:
        self._lease, self._runner, self._recorder, self._once = lease, runner, recorder, once
        self._asked_to_stop = threading.Event()

    @staticmethod
    def open(
        graph: Graph,
        home: Home,
        *,
        connect: Callable[..., SparkSession],
        options: Mapping[str, Any],
        on_event: Callable[[Event], None] = lambda _: None,
        report: Report = silent,
    ) -> ApplicationRun:
        """Lock the home, start Spark by `connect`, and open every query; nothing runs yet.

        Raises:
            HOME_LOCKED: Another driver holds the home.
            MillstreamError: Something does not fit; nothing was started.
        """
        runner_options = _runner_options(options)
        if (trigger := options.get("trigger")) is not None:
            graph = graph.with_trigger(trigger)
            raise_faults(check.faults(graph))
        queries = plan(graph, graph.select(options.get("select"), options.get("exclude")))
        with translating_full_disk(home):
            landed = [source.name for source in graph.sources if not source.live]
            served = [serve.name for serve in graph.serves]
            home.prepare(graph.app, sources=landed, serves=served)
            before = holder_of(home) if options.get("takeover") else None
            lease = Lease.acquire(home, takeover=bool(options.get("takeover")))
            run = run_record(graph, lease.epoch, options.get("settings", {}))
            recorder = Recorder(graph, home, run, on_event)
            if before is not None:
                recorder.on_event(Event("taken_over", "", f"from pid {before.pid}, {before.host}"))
            runner_options = replace(runner_options, on_commit=recorder.on_commit)
            try:
                spark = connect(log_dir=home.logs, report=report)
                warm_up(spark)
                runner = Runner(graph, queries, spark, lease, runner_options, recorder.on_event)
                recorder.begin([query.running for query in runner.queries], runner.notify)
            except BaseException as error:
                recorder.end(_outcome_of(error), error)
                lease.release()
                raise
        return ApplicationRun(lease, runner, recorder, once=bool(options.get("once")))

    @property
    def home(self) -> Home:
        """Where it is deployed."""
        return self._lease.home

    @property
    def _log(self) -> str:
        return log_of_jvm(self.home.logs)

    @property
    def queries(self) -> tuple[Supervised, ...]:
        """The queries and their state."""
        return tuple(self._runner.queries)

    def long_jobs(self) -> tuple[LongJob, ...]:
        """Return the jobs of its queries that run now and have run for some seconds."""
        return self._runner.long_jobs()

    @property
    def is_asked_to_stop(self) -> bool:
        """Whether no further batch is to begin."""
        return self._asked_to_stop.is_set()

    def ask_to_stop(self) -> None:
        """Have the running batches finish and nothing begin after them."""
        self._asked_to_stop.set()

    def serve(self, on_look: Callable[[], None] = lambda: None) -> None:
        """Run until asked to stop, or until nothing is left; then release the home.

        Raises:
            OvertakenError: Another driver took over.
            DRIVER_LOST: The JVM is gone.
        """
        try:
            self._serve_or_raise(on_look)
        except BaseException as error:
            self._recorder.end(_outcome_of(error), error)
            raise
        else:
            self._recorder.end(self._outcome)
        finally:
            self._lease.release()

    @property
    def _outcome(self) -> str:
        if any(query.state == "failed" for query in self.queries):
            return "failed"
        return "stopped" if self.is_asked_to_stop else "finished"

    def _serve_or_raise(self, on_look: Callable[[], None]) -> None:
        try:
            self._serve(on_look)
        except (OvertakenError, KeyboardInterrupt):
            self._runner.stop()
            raise
        except (Py4JError, OSError) as error:
            lost = lost_driver(self._log, within_s=_JVM_ENDS_WITHIN_S)
            if lost is None:
                raise
            raise lost from error

    def _serve(self, on_look: Callable[[], None]) -> None:
        if self._once:
            self._runner.run_once(lambda: self._keep_on(on_look))
        else:
            self._runner.start()
            while not self._runner.is_over and self._keep_on(on_look):
                self._runner.watch()
                self._asked_to_stop.wait(_LOOK_EVERY_S)
        self._runner.stop()

    def raise_if_stopped_for_good(self) -> None:
        """Raise what stopped queries died of."""
        self._runner.raise_if_stopped_for_good()

    def _keep_on(self, on_look: Callable[[], None]) -> bool:
        if lost := lost_driver(self._log):
            raise lost
        on_look()
        return not self._asked_to_stop.is_set()


def _outcome_of(error: BaseException) -> str:
    match error:
        case OvertakenError():
            return "overtaken"
        case KeyboardInterrupt():
            return "stopped"
    return "failed"


def _runner_options(options: Mapping[str, Any]) -> RunnerOptions:
    fail_fast = bool(options.get("fail_fast"))
    return RunnerOptions(
        trigger=Trigger("once") if options.get("once") else parse_trigger(options.get("trigger")),
        restart=NEVER if fail_fast else DEFAULT,
        fail_fast=fail_fast,
        upkeep=options.get("upkeep") or UpkeepOptions(unasked=options.get("maintain", True)),
    )


def parse_trigger(text: str | None) -> Trigger | None:
    """Read the trigger of a command.

    Raises:
        ARGUMENT_REFUSED: There is no such trigger.
    """
    if text is None:
        return None
    try:
        return Trigger.parse(text)
    except ValueError:
        expected = f"one of {TRIGGERS}"
        raise fault("ARGUMENT_REFUSED", option="--trigger", value=text, expected=expected) from None
