"""Delta tables outside the home, open: rows and fence are in one commit, on top of the last one."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties
from deltalake.exceptions import DeltaError

from millstream.errors import fault
from millstream.lake.delta import Facts, FencedTable, last_told
from millstream.lake.enforce import Shape as TableShape, columns_to_add, make_table
from millstream.lake.files import DataFile
from millstream.serve.fence import Fence, lets_in, passed, taken
from millstream.serve.store import Written, keyed, parted
from millstream.systems.files.sink import PASSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.serve.fence import Driver, Place, Turn
    from millstream.serve.shape import Column, Shape
    from millstream.serve.store import Refused, Rows, Settle
    from millstream.systems.delta.settings import DeltaPath

FENCE = "millstream.fence"
_OWN = "_millstream"
"""Where rows are written that no commit names yet; readers of Delta never look there."""


class Table:
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
        with _told(self.place):
            make_table(path, wanted)
            self._table = _Fenced(path, name=self.place.name, epoch=driver.epoch)
            self._added = columns_to_add(self._table, wanted)
        self._part = path / _OWN / f"{driver.owner}.parquet"

    def take(self) -> Fence:
        """Write this driver's epoch into the log of the table."""
        self._table.passing = lambda held: taken(held, self._driver, self.place)
        with _told(self.place):
            self._table.take()
            if self._added:
                self._table.add_columns(self._added)
                self._added = None
        return self._table.passed

    def fence(self) -> Fence | None:
        """Look at the fence."""
        with _told(self.place):
            return self._table.held()

    def write(self, turn: Turn, rows: Rows, settle: Settle) -> Written:
        """Write a batch and its fence in one commit."""
        held = self.fence()
        if not lets_in(held, self._driver, turn, self.place):
            assert held is not None
            return Written(applied=False, fence=held)
        with _told(self.place):
            refused, kept, gone = self._stage(rows)
            note = settle(refused)

            def passing(held: Fence | None) -> Fence:
                lets_in(held, self._driver, turn, self.place)
                assert held is not None
                return passed(held, turn, note)

            self._table.passing = passing
            told = Facts(query_id=turn.checkpoint, batch=turn.batch, digest=turn.digest)
            self._commit(kept, gone, replace(told, rows=sum(file.rows for file in kept)))
        return Written(applied=True, fence=self._table.passed, refused=tuple(refused))

    def close(self) -> None:
        """Nothing is held open."""

    def _commit(self, files: Sequence[DataFile], gone: pa.Table | None, facts: Facts) -> None:
        if self._shape.mode == "complete":
            self._table.replace(files, facts)
        elif self._shape.key:
            self._table.upsert(files, self._shape.key, facts, gone=gone)
            self._part.unlink(missing_ok=True)
        else:
            self._table.append(files, facts)

    def _stage(self, rows: Rows) -> tuple[list[Refused], list[DataFile], pa.Table | None]:
        """Write the rows to a file; give those refused, the file and the keys that go."""
        refused: list[Refused] = []
        gone: list[pa.Table] = []
        writer: pq.ParquetWriter | None = None
        self._part.parent.mkdir(exist_ok=True)
        try:
            for part in rows():
                whole, lacking = keyed(part, self._shape.key)
                refused += lacking
                kept, deleted = parted(whole)
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


class _Fenced(FencedTable):
    """A table whose commits carry the fence of a store."""

    passing: Callable[[Fence | None], Fence]
    """Says what the fence is after the commit; raises if there may be none."""
    passed: Fence

    def held(self) -> Fence | None:
        """Look at the fence of the last commit that has one."""
        self._table.update_incremental()
        return self._last()

    def _last(self) -> Fence | None:
        told = last_told(self._table, FENCE)
        return Fence(**json.loads(told)) if told else None

    def _fenced(self, properties: CommitProperties) -> CommitProperties:
        self.passed = self.passing(self._last())
        told = {**(properties.custom_metadata or {}), FENCE: json.dumps(asdict(self.passed))}
        return CommitProperties(
            custom_metadata=told,
            max_commit_retries=properties.max_commit_retries,
            app_transactions=properties.app_transactions,
        )


def _schema_of(columns: Sequence[Column]) -> str:
    """Give columns of plain types as Spark's JSON."""
    fields = [{"name": c.name, "type": c.type, "nullable": True, "metadata": {}} for c in columns]
    return json.dumps({"type": "struct", "fields": fields})


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Have the errors of a file system and of delta-rs told as what they mean."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in PASSING:
            raise fault("STORE_UNREACHABLE", store=place.name, why=why) from error
        raise fault("STORE_FAILED", store=place.name, why=why) from error
    except DeltaError as error:
        raise fault("STORE_FAILED", store=place.name, why=str(error)) from error
