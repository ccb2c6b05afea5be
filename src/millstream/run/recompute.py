"""Answers over snapshots, whenever an input has a new batch: no query of Spark runs them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from deltalake import DeltaTable

from millstream.build.build import build
from millstream.build.frontier import frontier_at
from millstream.build.inputs import Snapshots
from millstream.crash import reach
from millstream.lake.fenced_log import last_facts
from millstream.lake.frontier import Publication, least
from millstream.operators.build_context import BuildOptions
from millstream.run.idle import advances_without_rows
from millstream.serve.changes import Changes
from millstream.spark.jobs import name_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from millstream.lake.home import Home
    from millstream.lake.log import Facts
    from millstream.lake.table import TableSink
    from millstream.model.graph import Graph
    from millstream.model.trigger import Trigger
    from millstream.plan import Query

_LOOK_EVERY_S = 0.2
RECOMPUTED = "recompute"
"""The id of the query of each commit."""


class SnapshotAnswer(Protocol):
    """What is computed from snapshots, a commit at a time."""

    @property
    def facts(self) -> Facts:
        """What the table holds."""
        ...

    def make_ready(self) -> None:
        """Check, before a start, that what is stored fits together."""
        ...

    def step(self) -> bool:
        """Commit what is to be computed next; return whether there may be more."""
        ...

    def close(self) -> None:
        """Release what is held; `step` takes it again."""
        ...


class RecomputeRun:
    """Follows the inputs of an answer over snapshots, in a thread of its own."""

    def __init__(self, name: str, answer: SnapshotAnswer) -> None:
        self.name, self._answer = name, answer
        self._halt = threading.Event()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._raised: BaseException | None = None

    @property
    def facts(self) -> Facts:
        """What the table holds."""
        return self._answer.facts

    @property
    def is_active(self) -> bool:
        """Whether it looks for changes."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def failure(self) -> BaseException | None:
        """What it died of, if it did."""
        return self._raised

    @property
    def commits_facts(self) -> bool:
        """Whether each of its batches is a commit with facts."""
        return True

    @property
    def waiting(self) -> int | None:
        """How many rows it has left to read: it reads its inputs as a whole."""
        return None

    @property
    def is_reported(self) -> bool:
        """Whether Spark reports on its batches: it does not know of them."""
        return False

    @property
    def progress(self) -> dict[str, Any] | None:
        """Nothing: Spark reports no progress of it."""
        return None

    def progress_after(self, batch: int) -> tuple[dict[str, Any], ...]:  # noqa: ARG002
        """Nothing, as `progress`."""
        return ()

    def start(self, trigger: Trigger) -> None:
        """Look for changes at every trigger; once, if so asked."""
        self._raised = None
        self._halt.clear()
        self._thread = threading.Thread(target=self._work, args=(trigger,), daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Compute the answer from the inputs as they are now; not while the thread runs."""
        assert not self.is_active
        self._answer.make_ready()
        self._follow()

    def ask_to_stop(self) -> None:
        """Let no further answer begin."""
        self._halt.set()

    def stop(self) -> None:
        """Let the running answer finish, then stop."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join()
        self._answer.close()

    def _work(self, trigger: Trigger) -> None:
        pause = trigger.interval.total_seconds() if trigger.interval else _LOOK_EVERY_S
        try:
            self._answer.make_ready()
            self._follow()
            while trigger.kind != "once" and not self._halt.wait(pause):
                self._follow()
        except BaseException as error:
            self._answer.close()
            self._raised = error

    def _follow(self) -> None:
        """Compute until the answer is made from the inputs as they are."""
        while self._next() and not self._halt.is_set():
            continue

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the running answer finish, and no other begin."""
        with self._working:
            yield

    def _next(self) -> bool:
        with self._working:
            return self._answer.step()


class Recomputation:
    """A whole answer, made anew; the batches that it was made from are in the same commit."""

    def __init__(
        self,
        query: Query,
        graph: Graph,
        spark: SparkSession,
        home: Home,
        sink: TableSink | Changes,
        on_commit: Callable[[Facts], None],
    ) -> None:
        self.name = query.name
        self._query, self._graph, self._spark, self._home = query, graph, spark, home
        self._sink, self._on_commit = sink, on_commit

    @property
    def facts(self) -> Facts:
        """What the table holds."""
        return self._sink.facts

    def make_ready(self) -> None:
        """Check that stores and the log of their changes fit together."""
        if isinstance(self._sink, Changes):
            self._sink.check_against_checkpoint()

    def close(self) -> None:
        """Do nothing: nothing is held between two answers."""

    def step(self) -> bool:
        """Compute the answer anew, if an input has changed."""
        tables = {n: DeltaTable(str(self._home.table(n))) for n in self._query.after}
        batches = {name: last_facts(table).changed for name, table in tables.items()}
        if batches == {name: self.facts.inputs.get(name, -1) for name in batches}:
            self._pass_time({name: table.version() for name, table in tables.items()})
            return False
        versions = {name: table.version() for name, table in tables.items()}
        read = Snapshots(self._graph, self._spark, self._home, versions)
        name_jobs(self._spark, self.name)
        batch = self.facts.batch + 1
        reach("batch_planned", self._home.path, self.name, batch)
        options = BuildOptions(aside=self._home.aside(self.name), models=self._home.models)
        if isinstance(self._sink, Changes):
            options = BuildOptions(stops_if_raised=True, models=self._home.models)
        frame = build(self._graph, self.name, read, options).frame
        staged = self._sink.stage(frame, batch)
        reach("batch_staged", self._home.path, self.name, batch)
        published = self._published(versions)
        self._sink.commit(staged, batch, RECOMPUTED, inputs=batches, published=published)
        reach("sink_commit", self._home.path, self.name, batch)
        self._on_commit(self.facts)
        return True

    def _pass_time(self, versions: Mapping[str, int]) -> None:
        """Publish a later frontier, if those of the inputs have advanced without rows."""
        if self.facts.batch >= 0 and advances_without_rows(self._graph, self.name):
            self._sink.publish(self._published(versions))

    def _published(self, versions: Mapping[str, int]) -> Publication:
        return Publication(least(frontier_at(self._home, n, v) for n, v in versions.items()))
