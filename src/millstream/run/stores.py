"""A served answer on its way into stores: computed once, delivered to each exactly once."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from millstream.crash import reach
from millstream.errors import KeyNotUniqueError
from millstream.lake.enforce import Shape as TableShape, open_table
from millstream.lake.files import DataFile
from millstream.lake.log import Facts
from millstream.lake.outbox import Outbox, parts_of
from millstream.lake.staging import digest_without_writing, observe, stage
from millstream.lake.table import has_double, keys_of
from millstream.model.dataset import StoreSink
from millstream.sinks.fence import Driver, Turn, hold_to_checkpoint
from millstream.sinks.shape import GONE, Shape, columns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from millstream.checkpoint import CheckpointLog
    from millstream.lake.staging import Staged
    from millstream.model.dataset import Serve
    from millstream.run.lease import Lease
    from millstream.sinks.fence import Fence
    from millstream.sinks.store import Refused, Store

STORE = "_store"
REASON = "_reason"
_FILES_PER_STORE = 1000


class Served:
    """The stores of one served answer, open for writing."""

    def __init__(
        self,
        serve: Serve,
        app: str,
        frame: DataFrame,
        log: CheckpointLog,
        lease: Lease,
        on_difference: Callable[[int], None],
    ) -> None:
        self._serve, self._log, self._home, self._epoch = serve, log, lease.home, lease.epoch
        self._writer, self._on_difference = f"{app}/{serve.name}", on_difference
        self._schema, self._columns = frame.schema, columns_of(frame.schema.json())
        self._sinks = [sink for sink in serve.to if isinstance(sink, StoreSink)]
        self._outbox = Outbox(self._home.staging(serve.name))
        self._stores: list[Store] = []
        self._fences: list[Fence] = []

    @property
    def facts(self) -> Facts:
        """What the store holds that is furthest behind."""
        return min(map(_facts, self._fences), key=lambda facts: facts.batch)

    def open(self) -> None:
        """Connect to every store, and shut earlier drivers out.

        Raises:
            MillstreamError: A store cannot be reached, or the answer does not fit.
        """
        driver = Driver(self._writer, self._epoch, self._log.query_id or "")
        for sink in self._sinks:
            shape = Shape(
                self._serve.name,
                self._serve.mode or "append",
                self._columns,
                tuple(sink.key),
                self._serve.at,
                evolve=sink.evolve,
                newest_by=sink.newest_by,
            )
            self._stores.append(sink.open(shape, driver))
            self._fences.append(self._stores[-1].take())
        reach("table_taken", self._home.path, self._serve.name)

    def close(self) -> None:
        """Let all connections go."""
        for store in self._stores:
            store.close()

    def hold_to_checkpoint(self) -> None:
        """Make sure that every store and the checkpoint tell the same story.

        Raises:
            StoreRestoredError: A store lacks batches.
            StoreAheadError: A store has batches of another checkpoint.
        """
        for number, store in enumerate(self._stores):
            # Whether a batch whose answer was lost was written is known to the store alone.
            held = store.fence() or replace(self._fences[number], batch=-1, checkpoint="")
            hold_to_checkpoint(
                held,
                store.place,
                query_id=self._log.query_id or "",
                committed=self._log.committed,
                planned=self._log.planned,
                checkpoint=str(self._log.path),
            )
            self._fences[number] = held

    def stage(self, frame: DataFrame, batch: int) -> Staged:
        """Compute a batch and keep it, unless it was computed before and one store may have it."""
        marked, query_id = self._mark(frame), self._log.query_id or ""
        seen, observation = observe(marked, {}, frame.columns)
        if kept := self._outbox.kept(query_id, batch, marked.columns):
            if digest_without_writing(seen, observation) != kept.digest:
                self._on_difference(batch)
            return kept
        staged = stage(seen, observation, self._outbox.folder)
        self._outbox.keep(staged, query_id, batch, marked.columns)
        return staged

    def replay(self, frame: DataFrame) -> str:
        """Compute a batch that every store has; give its digest."""
        return digest_without_writing(*observe(self._mark(frame), {}, frame.columns))

    def commit(self, staged: Staged, batch: int, query_id: str) -> None:
        """Write a batch into every store that does not have it.

        Raises:
            KeyNotUniqueError: A store is to have two rows for one key.
        """
        self._refuse_double_keys(staged, batch)
        turn = Turn(query_id, batch, staged.digest)
        for number, store in enumerate(self._stores):
            settle = partial(self._settle, number, staged, turn)
            written = store.write(turn, partial(self._rows, number, staged), settle)
            if not written.applied and written.fence.digest != staged.digest:
                self._on_difference(batch)
            self._fences[number] = written.fence
            self._reach("store_commit", batch)

    def _settle(self, number: int, staged: Staged, turn: Turn, refused: Sequence[Refused]) -> str:
        """Put refused rows aside while the store still waits; say what the batch did."""
        aside = sum(r.rows.num_rows for r in refused)
        if aside:
            self._put_aside(number, turn, refused)
        counts = {"input": staged.rows, "written": staged.rows - aside, "quarantined": aside}
        facts = replace(
            _facts(self._fences[number]).plus(counts),
            query_id=turn.checkpoint,
            epoch=self._epoch,
            batch=turn.batch,
            rows=staged.rows,
            digest=staged.digest,
        )
        self._reach("store_written", turn.batch)
        return json.dumps(asdict(facts), sort_keys=True)

    def _put_aside(self, number: int, turn: Turn, refused: Sequence[Refused]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        fields = [*self._schema.fields, *(StructField(n, StringType()) for n in (STORE, REASON))]
        shape = TableShape(self._serve.name, StructType(fields).json(), self._serve.at, evolve=True)
        table = open_table(self._home.quarantine(self._serve.name), shape, epoch=self._epoch)
        store = f"{turn.checkpoint}.{number}"
        if table.last_batch_of(store) >= turn.batch:
            return
        name = self._stores[number].place.name
        rows = pa.concat_tables(_with_reason(r, name) for r in refused)
        file = self._outbox.folder / f"refused-{number}.parquet"
        pq.write_table(rows, file)
        facts = replace(table.facts, query_id=store, batch=turn.batch, rows=rows.num_rows)
        facts = facts.plus({"written": rows.num_rows})
        first = number * _FILES_PER_STORE
        table.append([DataFile.read(file, {})], facts, number_from=first)
        self._reach("quarantine_commit", turn.batch)

    def _mark(self, frame: DataFrame) -> DataFrame:
        """Say of each row which stores are to delete it."""
        conditions = {
            f"{GONE}{number}": F.coalesce(F.expr(sink.delete_when), F.lit(False))
            for number, sink in enumerate(self._sinks)
            if sink.delete_when
        }
        return frame.withColumns(conditions) if conditions else frame

    def _rows(self, number: int, staged: Staged) -> Iterator[pa.Table]:
        """Give the rows as one store is to have them."""
        names = [column.name for column in self._columns]
        for part in parts_of(staged.files):
            rows, gone = part.select(names), f"{GONE}{number}"
            yield rows.append_column(GONE, part.column(gone)) if self._deletes(number) else rows

    def _deletes(self, number: int) -> bool:
        return bool(self._sinks[number].delete_when)

    def _refuse_double_keys(self, staged: Staged, batch: int) -> None:
        keys = {(*s.key, *((s.newest_by,) if s.newest_by else ())) for s in self._sinks if s.key}
        for key in keys if staged.files else ():
            if has_double(keys_of(staged.files, key).drop_null()):
                raise KeyNotUniqueError(self._serve.name, key=key, batch=batch, at=self._serve.at)

    def _reach(self, point: str, batch: int) -> None:
        reach(point, self._home.path, self._serve.name, batch)


def _facts(fence: Fence) -> Facts:
    return Facts(**json.loads(fence.note)) if fence.batch >= 0 and fence.note else Facts()


def _with_reason(refused: Refused, store: str) -> pa.Table:
    import pyarrow as pa

    rows = refused.rows
    if GONE in rows.column_names:
        rows = rows.drop_columns([GONE])
    for name, text in ((STORE, store), (REASON, refused.reason)):
        rows = rows.append_column(name, pa.array([text] * rows.num_rows, pa.string()))
    return rows
