"""The sink of a served answer: computed once, delivered to each store exactly once."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from millstream.checkpoint.health import make_ready
from millstream.crash import reach
from millstream.errors import StoreAheadError, StoreRestoredError, fault
from millstream.lake.change_log import ChangeLog
from millstream.lake.enforce import TableShape, open_table
from millstream.lake.fence import Decision, PendingBatch
from millstream.lake.files import DataFile
from millstream.lake.frontier import Publication, moment, nothing_known
from millstream.lake.ledger import record_served
from millstream.lake.log import Facts
from millstream.lake.staged_batches import StagedBatches, read_parts
from millstream.lake.staging import digest_without_writing, observe, stage
from millstream.lake.table import has_double, keys_of
from millstream.model.sink import LogSink, ShownSink
from millstream.serve.fence import Driver, check_against_checkpoint
from millstream.serve.shape import GONE, Shape, columns_of
from millstream.serve.sink import WritableSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from millstream.checkpoint import CheckpointLog
    from millstream.lake.fence import Fence
    from millstream.lake.frontier import Published
    from millstream.lake.lease import Lease
    from millstream.lake.staging import Staged
    from millstream.model.dataset import Serve
    from millstream.serve.store import Refused, Store

STORE = "_store"
REASON = "_reason"
_FILES_PER_STORE = 1000
_COMPLETE_TO = "complete_to"


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A batch that is being delivered to the stores."""

    staged: Staged
    pending: PendingBatch
    inputs: Mapping[str, int]
    """What the answer was made from, if it is recomputed."""
    published: Callable[[int], Publication]


class ServeSink:
    """The stores of one served answer, open for writing; earlier drivers are shut out."""

    def __init__(  # noqa: PLR0913 - all that is known of the answer and of the run
        self,
        serve: Serve,
        app: str,
        frame: DataFrame,
        log: CheckpointLog | ChangeLog,
        lease: Lease,
        on_difference: Callable[[int], None],
        *,
        published: Published = nothing_known,
    ) -> None:
        """Connect to every store.

        Raises:
            MillstreamError: A store cannot be reached, or the answer does not fit.
        """
        self.serve, self._log, self._home, self._epoch = serve, log, lease.home, lease.epoch
        self.has_changes = isinstance(log, ChangeLog) and serve.mode == "update"
        """Whether a batch contains deleted rows."""
        self._writer, self._on_difference = f"{app}/{serve.name}", on_difference
        self._schema, self._columns = frame.schema, columns_of(frame.schema.json())
        self._sinks = [sink for sink in serve.to if isinstance(sink, WritableSink)]
        self._shown = [sink for sink in serve.to if isinstance(sink, ShownSink)]
        self.batches = StagedBatches(self._home.staging(serve.name))
        self._stores: list[Store] = []
        self._fences: list[Fence] = []
        self._published = published
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def facts(self) -> Facts:
        """The facts of the store that is furthest behind."""
        return min(map(_facts, self._fences), key=lambda facts: facts.batch)

    def _open(self) -> None:
        driver = self._driver()
        for sink in self._sinks:
            shape = Shape(
                self.serve.name,
                self.serve.mode or "append",
                self._columns,
                tuple(sink.key),
                self.serve.at,
                evolve=sink.evolve,
                newest_by=sink.newest_by,
                schema=self._schema.json(),
            )
            self._stores.append(sink.open(shape, driver))
            self._fences.append(self._take(self._stores[-1]))
        self._record_facts()
        reach("table_taken", self._home.path, self.serve.name)

    def _driver(self) -> Driver:
        return Driver(
            self._writer,
            self._epoch,
            self._log.query_id or "",
            folder=self._home.sinks(self.serve.name),
            committed=self._log.committed,
            planned=lambda: self._log.planned,
            log=str(self._log.path),
        )

    def _take(self, store: Store) -> Fence:
        try:
            return store.take()
        except (StoreAheadError, StoreRestoredError):
            if not isinstance(self._log, ChangeLog):
                # If the checkpoint is damaged, that is the cause, and is reported instead.
                make_ready(self.serve.name, self._log.path, Facts())
            raise

    def close(self) -> None:
        """Close all connections."""
        for store in self._stores:
            store.close()

    def check_against_checkpoint(self) -> None:
        """Check the fence of every store against the checkpoint.

        Raises:
            StoreRestoredError: A store lacks batches.
            StoreAheadError: A store has batches of another checkpoint.
        """
        for number, store in enumerate(self._stores):
            # If the reply to a commit was lost, only the store knows whether it happened.
            held = store.fence() or replace(self._fences[number], batch=-1, checkpoint="")
            log = self._log
            check_against_checkpoint(held, store.place, log.logged, str(log.path))
            self._fences[number] = held

    def stage(self, frame: DataFrame, batch: int) -> Staged:
        """Compute a batch and keep it, unless it was computed before and one store may have it."""
        marked, query_id = self.mark(frame), self._log.query_id or ""
        if kept := self.batches.kept(query_id, batch, marked.columns):
            if digest_without_writing(*observe(marked, {}, frame.columns)) != kept.digest:
                self._on_difference(batch)
            return kept
        staged = self.compute(frame, self.batches.folder)
        self.batches.keep(staged, query_id, batch, marked.columns)
        return staged

    def compute(self, frame: DataFrame, folder: Path) -> Staged:
        """Write rows to a folder, marked with the stores that delete them."""
        return stage(*observe(self.mark(frame), {}, frame.columns), folder)

    def replay(self, frame: DataFrame) -> str:
        """Compute a batch that every store has; return its digest."""
        return digest_without_writing(*observe(self.mark(frame), {}, frame.columns))

    def commit(
        self,
        staged: Staged,
        batch: int,
        query_id: str,
        inputs: Mapping[str, int] | None = None,
        *,
        published: Publication | None = None,
    ) -> None:
        """Write a batch into every store that does not have it.

        Args:
            staged: Its rows.
            batch: Its number.
            query_id: The query whose batch it is.
            inputs: What the answer was made from, if it is recomputed.
            published: What is known of time after it; by default, `published` of the sink says.

        Raises:
            KEY_NOT_UNIQUE: A batch has two rows for one key of a store.
        """
        self._refuse_double_keys(staged, batch)
        pending = PendingBatch(query_id, batch, staged.digest)
        publish = self._published if published is None else (lambda _: published)
        delivery = _Delivery(staged, pending, inputs or {}, publish)
        for number, store in enumerate(self._stores):
            settle = partial(self._settle, number, delivery)
            result = store.write(pending, partial(self._rows, number, staged), settle)
            if result.decision is Decision.CHANGED:
                self._on_difference(batch)
            self._fences[number] = result.fence
            self._reach("store_commit", batch)
        self._record_facts()
        for sink in self._shown:
            sink.show(batch, self._rows(-1, staged))

    def _record_facts(self) -> None:
        """Record for the ledger what the stores hold."""
        held = zip(self._stores, self._fences, strict=True)
        facts = {store.place.name: _facts(fence) for store, fence in held}
        record_served(self._home, self.serve.name, facts)

    def _settle(self, number: int, delivery: _Delivery, refused: Sequence[Refused]) -> str:
        """Quarantine refused rows before the store commits; return the facts of the batch."""
        staged, pending = delivery.staged, delivery.pending
        aside = sum(r.rows.num_rows for r in refused)
        if aside:
            self._quarantine(number, pending, refused)
        counts = {"input": staged.rows, "written": staged.rows - aside, "quarantined": aside}
        facts = replace(
            _facts(self._fences[number]).plus(counts),
            query_id=pending.checkpoint,
            epoch=self._epoch,
            batch=pending.batch,
            rows=staged.rows,
            digest=staged.digest,
            inputs=delivery.inputs,
        ).publishing(delivery.published(pending.batch))
        self._reach("store_written", pending.batch)
        complete_to = moment(facts.frontier)
        extra = {_COMPLETE_TO: complete_to.isoformat() if complete_to else None}
        return json.dumps({**asdict(facts), **extra}, sort_keys=True)

    def _quarantine(self, number: int, pending: PendingBatch, refused: Sequence[Refused]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        fields = [*self._schema.fields, *(StructField(n, StringType()) for n in (STORE, REASON))]
        shape = TableShape(self.serve.name, StructType(fields).json(), self.serve.at, evolve=True)
        table = open_table(self._home.quarantine(self.serve.name), shape, epoch=self._epoch)
        store = f"{pending.checkpoint}.{number}"
        name = self._stores[number].place.name
        rows = pa.concat_tables(_with_reason(r, name) for r in refused)
        file = self.batches.folder / f"refused-{number}.parquet"
        pq.write_table(rows, file)
        facts = replace(table.facts, query_id=store, batch=pending.batch, rows=rows.num_rows)
        facts = facts.plus({"written": rows.num_rows})
        first = number * _FILES_PER_STORE
        table.append([DataFile.read(file, {})], facts, number_from=first)
        self._reach("quarantine_commit", pending.batch)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row, in every store of rows that change."""
        return tuple(self._sinks[0].key)

    @property
    def marks(self) -> tuple[str, ...]:
        """The columns that say which stores delete a row."""
        numbers = [n for n, s in enumerate(self._sinks) if s.delete_when or self.has_changes]
        return tuple(f"{GONE}{number}" for number in numbers)

    @property
    def columns_marked(self) -> tuple[str, ...]:
        """All columns of a batch."""
        return (*(column.name for column in self._columns), *self.marks)

    def mark(self, frame: DataFrame) -> DataFrame:
        """Add columns that say which stores delete a row."""
        conditions = {f"{GONE}{n}": sink.delete_when for n, sink in enumerate(self._sinks)}
        marks = {
            mark: F.coalesce(F.expr(condition), F.lit(False)) if condition else F.lit(False)
            for mark, condition in conditions.items()
            if mark in self.marks
        }
        return frame.withColumns(marks) if marks else frame

    def _rows(self, number: int, staged: Staged) -> Iterator[pa.Table]:
        """Yield the rows for one store."""
        names = [column.name for column in self._columns]
        for part in read_parts(staged.files):
            rows, gone = part.select(names), f"{GONE}{number}"
            yield rows.append_column(GONE, part.column(gone)) if gone in self.marks else rows

    def _refuse_double_keys(self, staged: Staged, batch: int) -> None:
        held = [s for s in self._sinks if s.key and not self._is_added_to(s)]
        keys = {(*s.key, *((s.newest_by,) if s.newest_by else ())) for s in held}
        for key in keys if staged.files else ():
            if has_double(keys_of(staged.files, key).drop_null()):
                raise fault(
                    "KEY_NOT_UNIQUE",
                    at=self.serve.at,
                    batch=batch,
                    table=self.serve.name,
                    key=", ".join(key),
                )

    def _is_added_to(self, sink: WritableSink) -> bool:
        is_log = isinstance(sink, LogSink) and sink.keeps_every_row
        return is_log and (self.serve.mode or "append") == "append"

    def _reach(self, point: str, batch: int) -> None:
        reach(point, self._home.path, self.serve.name, batch)


def _facts(fence: Fence) -> Facts:
    if fence.batch < 0 or not fence.note:
        return Facts()
    facts = json.loads(fence.note)
    return Facts(**{name: value for name, value in facts.items() if name != _COMPLETE_TO})


def _with_reason(refused: Refused, store: str) -> pa.Table:
    import pyarrow as pa

    rows = refused.rows
    if GONE in rows.column_names:
        rows = rows.drop_columns([GONE])
    for name, text in ((STORE, store), (REASON, refused.reason)):
        rows = rows.append_column(name, pa.array([text] * rows.num_rows, pa.string()))
    return rows
