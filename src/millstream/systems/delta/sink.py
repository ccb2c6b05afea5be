"""Delta tables outside the home as stores: rows and fence are in one commit."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from millstream.errors import fault
from millstream.lake.delta import FencedTable
from millstream.lake.enforce import TableShape, columns_to_add, make_table
from millstream.lake.fence import Decision, Fence
from millstream.lake.files import DataFile
from millstream.lake.log import Facts
from millstream.serve.fence import admit_batch, take_fence
from millstream.serve.store import WriteResult, split_deleted, split_keyless
from millstream.systems.files.sink import TRANSIENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.lake.fence import PendingBatch
    from millstream.lake.fenced_log import Look
    from millstream.serve.fence import Driver, Place
    from millstream.serve.shape import Column, Shape
    from millstream.serve.store import Refused, Rows, Settle
    from millstream.systems.delta.settings import DeltaPath

FENCE = "millstream.fence"
_OWN = "_millstream"
"""Where rows are written before a commit names them; Delta's readers ignore it."""


class DeltaStore:
    """A table open for writing."""

    def __init__(self, sink: DeltaPath, shape: Shape, driver: Driver) -> None:
        self.place = sink.place(shape.dataset)
        self._shape, self._driver = shape, driver
        path = Path(sink.path).absolute()
        feed = {} if shape.mode == "append" else {"delta.enableChangeDataFeed": "true"}
        wanted = TableShape(
            self.place.name,
            shape.schema or _schema_of(shape.columns),
            shape.at,
            evolve=shape.evolve,
            properties=feed,
        )
        with _translating_errors(self.place):
            make_table(path, wanted)
            self._table = FencedTable(
                path, name=self.place.name, epoch=driver.epoch, owner=driver.owner
            )
            self._added = columns_to_add(self._table, wanted)
        self._part = path / _OWN / f"{driver.owner}.parquet"

    def take(self) -> Fence:
        """Write this driver's epoch into the log of the table."""
        fence: Fence | None = None

        def look() -> dict[str, str]:
            nonlocal fence
            fence = take_fence(self._held(), self._driver, self.place)
            return _commit_info(fence)

        with _translating_errors(self.place):
            self._table.take(look)
            if self._added:
                self._table.add_columns(self._added, look)
                self._added = None
        assert fence is not None
        return fence

    def fence(self) -> Fence | None:
        """Look at the fence."""
        with _translating_errors(self.place):
            self._table.refresh()
            return self._held()

    def _held(self) -> Fence | None:
        fence = self._table.last_commit_value(FENCE)
        return Fence(**json.loads(fence)) if fence else None

    def write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        """Write a batch and its fence in one commit."""
        held, decision = admit_batch(self.fence(), self._driver, pending, self.place)
        if decision is not Decision.APPLY:
            return WriteResult(decision, held)
        with _translating_errors(self.place):
            refused, kept, gone = self._stage(rows)
            fence = held.with_batch(pending, settle(refused))

            def look() -> dict[str, str] | None:
                _, decision = admit_batch(self._held(), self._driver, pending, self.place)
                return _commit_info(fence) if decision is Decision.APPLY else None

            facts = Facts(query_id=pending.checkpoint, batch=pending.batch, digest=pending.digest)
            facts = replace(facts, rows=sum(file.rows for file in kept))
            self._commit(kept, gone, facts, look)
        return WriteResult(decision, fence, tuple(refused))

    def close(self) -> None:
        """Nothing is held open."""

    def _commit(
        self, files: Sequence[DataFile], gone: pa.Table | None, facts: Facts, look: Look
    ) -> None:
        if self._shape.mode == "complete":
            self._table.replace(files, facts, look=look)
        elif self._shape.key:
            self._table.upsert(files, self._shape.key, facts, gone=gone, look=look)
            self._part.unlink(missing_ok=True)
        else:
            self._table.append(files, facts, look=look)

    def _stage(self, rows: Rows) -> tuple[list[Refused], list[DataFile], pa.Table | None]:
        """Write the rows to a file; return the refused rows, the file and the keys to delete."""
        refused: list[Refused] = []
        gone: list[pa.Table] = []
        writer: pq.ParquetWriter | None = None
        self._part.parent.mkdir(exist_ok=True)
        try:
            for part in rows():
                whole, lacking = split_keyless(part, self._shape.key)
                refused += lacking
                kept, deleted = split_deleted(whole)
                if deleted is not None and deleted.num_rows:
                    gone.append(deleted.select(list(self._shape.key)))
                if kept.num_rows:
                    writer = writer or pq.ParquetWriter(self._part, kept.schema)
                    writer.write_table(kept)
        finally:
            if writer is not None:
                writer.close()
        files = [DataFile.read(self._part, {})] if writer is not None else []
        return refused, files, pa.concat_tables(gone) if gone else None


def _commit_info(fence: Fence) -> dict[str, str]:
    """Return a fence as a commit records it."""
    return {FENCE: json.dumps(asdict(fence))}


def _schema_of(columns: Sequence[Column]) -> str:
    """Return columns of plain types as Spark's JSON."""
    fields = [{"name": c.name, "type": c.type, "nullable": True, "metadata": {}} for c in columns]
    return json.dumps({"type": "struct", "fields": fields})


@contextmanager
def _translating_errors(place: Place) -> Iterator[None]:
    """Translate errors of the file system and of delta-rs into errors of Millstream."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in TRANSIENT:
            raise fault("STORE_UNREACHABLE", store=place.name, why=why) from error
        raise fault("STORE_FAILED", store=place.name, why=why) from error
    except DeltaError as error:
        raise fault("STORE_FAILED", store=place.name, why=str(error)) from error
