"""The table of a functional stream: a commit for each batch of its program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.build.build import timed_inputs
from millstream.build.frontier import frontier_at
from millstream.build.inputs import Snapshots
from millstream.crash import reach
from millstream.dstream.grid import GridProgram, first_ms, interval_ms, last_ms
from millstream.errors import fault
from millstream.lake.fenced_log import last_facts
from millstream.lake.frontier import NOTHING_YET, Publication, least
from millstream.model.schema import Schema
from millstream.run.recompute import RECOMPUTED
from millstream.spark.jobs import name_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession

    from millstream.dstream.grid import GridRun, Read, TimedRows
    from millstream.lake.home import Home
    from millstream.lake.log import Facts
    from millstream.lake.table import TableSink
    from millstream.model.dataset import FunctionalStream
    from millstream.model.graph import Graph


class ProgramAnswer:
    """Runs the program over the intervals that are complete in all inputs, one after the other.

    The table publishes, in the commit of a batch, that it is complete up to the time of the batch.
    So the table alone says which batches are stored; one that runs again writes nothing.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - a query, and where it runs
        self,
        stream: FunctionalStream,
        after: Sequence[str],
        graph: Graph,
        spark: SparkSession,
        home: Home,
        sink: TableSink,
        on_commit: Callable[[Facts], None],
    ) -> None:
        self._stream, self._after, self._graph, self._spark = stream, after, graph, spark
        self._home, self._sink, self._on_commit = home, sink, on_commit
        self._schema = Schema.parse(stream.schema).to_ddl()
        self._interval_ms = interval_ms(stream)
        self._place = home.program(stream.name)
        self._inputs: tuple[TimedRows, ...] = ()
        self._batches: Mapping[str, int] = {}
        self._to_ms = -1
        self._run: GridRun | None = None

    @property
    def facts(self) -> Facts:
        """What the table holds."""
        return self._sink.facts

    def make_ready(self) -> None:
        """Do nothing: the first step compares the program with its table."""

    def step(self) -> bool:
        """Run the next batch whose rows are complete, if there is one."""
        name_jobs(self._spark, self._stream.name)
        return self._advance() or (self._look() and self._advance())

    def close(self) -> None:
        """Release the home of the program."""
        run, self._run, self._to_ms = self._run, None, -1
        if run is not None:
            run.close()

    @property
    def _done_ms(self) -> int:
        """The time of the last batch that the table has."""
        frontier = self.facts.frontier
        return -1 if frontier in (None, NOTHING_YET) else (frontier - 1) // 1000

    def _look(self) -> bool:
        """Take snapshots of the inputs; return whether another interval is complete."""
        tables = {name: DeltaTable(str(self._home.table(name))) for name in self._after}
        versions = {name: table.version() for name, table in tables.items()}
        frontiers = {n: frontier_at(self._home, n, v) for n, v in versions.items()}
        for name, frontier in frontiers.items():
            if frontier is None:
                why = "does not know up to which time it is complete"
                raise fault(
                    "STREAM_TIME",
                    at=self._stream.at,
                    stream=self._stream.name,
                    reads=name,
                    why=why,
                )
        frontier = least(frontiers.values())
        if frontier is None or frontier == NOTHING_YET:
            return False
        to_ms = last_ms(frontier, self._interval_ms)
        if to_ms <= max(self._to_ms, self._done_ms):
            return False
        snapshots = Snapshots(self._graph, self._spark, self._home, versions)
        self._inputs = timed_inputs(self._graph, self._stream, snapshots)
        self._batches = {name: last_facts(table).changed for name, table in tables.items()}
        self._to_ms = int(to_ms)
        return True

    def _advance(self) -> bool:
        """Run a batch of the snapshots that were taken last."""
        if self._run is None:
            self._run = self._opened()
        return self._run is not None and self._run.step(self._to_ms)

    def _opened(self) -> GridRun | None:
        """Open the program; None while there is no row of a batch."""
        zero_ms = first_ms(self._inputs, self._to_ms, self._interval_ms)
        if zero_ms is None or self._to_ms <= self._done_ms:
            return None
        reads = [self._read(number) for number in range(len(self._inputs))]
        program = GridProgram(self._spark, self._stream, reads, self._write, self._end)
        return program.resume(self._place, zero_ms, self._done_ms)

    def _read(self, number: int) -> Read:
        def read(after_ms: int, to_ms: int) -> RDD[Any]:
            # Of the newest snapshots: a batch may run long after the program was opened.
            return self._inputs[number].between(after_ms, to_ms)

        return read

    def _write(self, ms: int, rdd: RDD[Any]) -> None:
        """Commit what the program made of a batch, unless the table has it."""
        if ms <= self._done_ms:
            return
        batch = self.facts.batch + 1
        self._reach("batch_planned", batch)
        staged = self._sink.stage(self._spark.createDataFrame(rdd, self._schema), batch)
        if not staged.seen["_rows"] and self._stream.mode != "complete":
            return
        self._reach("batch_staged", batch)
        self._sink.commit(staged, batch, RECOMPUTED, inputs=self._batches, published=_published(ms))
        self._reach("sink_commit", batch)
        self._on_commit(self.facts)

    def _end(self, ms: int) -> None:
        """Publish that a batch has run, if it had no rows."""
        if ms > self._done_ms:
            self._sink.publish(_published(ms))

    def _reach(self, point: str, batch: int) -> None:
        reach(point, self._home.path, self._stream.name, batch)


def _published(ms: int) -> Publication:
    # No row to come is of a batch that has run.
    return Publication(ms * 1000 + 1)
