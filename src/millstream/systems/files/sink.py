"""A folder of files as a store: a batch is a file, and the fence that names it is its commit.

The file is written where no reader looks, and forced to disk; then the fence is replaced by one
that names it; then the file gets its name among the others. If the driver dies in between, the next
one that reads the fence finishes the rename.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from millstream.errors import fault
from millstream.lake.durable import sync_folder, sync_written, write_durably
from millstream.lake.fence import Decision, Fence
from millstream.serve.encode import as_json, as_objects, encode
from millstream.serve.fence import admit_batch, take_fence
from millstream.serve.shape import NESTED
from millstream.serve.store import Refused, WriteResult, salvage
from millstream.systems.files.settings import OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.lake.fence import PendingBatch
    from millstream.serve.fence import Driver, Place
    from millstream.serve.shape import Column, Shape
    from millstream.serve.store import Rows, Settle
    from millstream.systems.files.settings import FileSink

_WAIT_S = 30.0
_LOOK_EVERY_S = 0.02
TRANSIENT = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE)
"""Transient errors of a file system: it is full, or was away."""
_UNFINISHED = ".part"


class FileStore:
    """A folder open for writing."""

    def __init__(self, sink: FileSink, shape: Shape, driver: Driver) -> None:
        self.place = sink.place(shape.dataset)
        self._shape, self._driver, self._format = shape, driver, sink.format
        self._folder = Path(sink.path).absolute()
        self._own = self._folder / OWN
        self._fence = self._own / f"{shape.dataset}.json"
        with _translating_errors(self.place):
            self._own.mkdir(parents=True, exist_ok=True)

    def take(self) -> Fence:
        """Write this driver's epoch beside the files."""
        with _translating_errors(self.place), self._locked():
            fence = take_fence(self._read_and_finish(), self._driver, self.place)
            for left in self._own.glob(f"{self._shape.dataset}-*{_UNFINISHED}"):
                left.unlink()
            self._put(fence, "")
        return fence

    def fence(self) -> Fence | None:
        """Read the fence; finish the rename that it names."""
        with _translating_errors(self.place), self._locked():
            return self._read_and_finish()

    def write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        """Write a batch as a file, and commit it by the fence that names it."""
        with _translating_errors(self.place):
            held, decision = admit_batch(self.fence(), self._driver, pending, self.place)
            if decision is not Decision.APPLY:
                return WriteResult(decision, held)
            name = f"{self._shape.dataset}-{pending.batch:08d}.{self._format}"
            part_file = self._own / f"{name}.{self._driver.owner}{_UNFINISHED}"
            is_any, refused = self._write_file(part_file, rows)
            with self._locked():
                # Another driver may have taken over while the file was written.
                held, _ = admit_batch(self._read_and_finish(), self._driver, pending, self.place)
                if is_any and (self._folder / name).exists():
                    raise fault(
                        "STORE_FAILED",
                        store=self.place.name,
                        why=f"{name!r} is there, and the fence does not know it",
                    )
                fence = held.with_batch(pending, settle(refused))
                self._put(fence, name if is_any else "")
                self._read_and_finish()
        return WriteResult(decision, fence, tuple(refused))

    def close(self) -> None:
        """Nothing is held open."""

    def _write_file(self, path: Path, rows: Rows) -> tuple[bool, list[Refused]]:
        """Write rows, durably; return whether there were any, and which are refused."""
        refused, total = list[Refused](), 0
        parts = (part for part in rows() if part.num_rows)
        first = next(parts, None)
        if first is None:
            return False, refused
        with path.open("wb") as file:
            write, end = _FORMATS[self._format](file, first.schema, self._shape.columns)
            for part in itertools.chain([first], parts):
                total += part.num_rows
                refused += salvage(part, write)
            end()
            sync_written(file)
        is_any = total > sum(some.rows.num_rows for some in refused)
        if not is_any:
            path.unlink()
        sync_folder(self._own)
        return is_any, refused

    def _put(self, fence: Fence, file: str) -> None:
        """Replace the fence, durably; `file` is what it commits."""
        write_durably(self._fence, json.dumps({**asdict(fence), "file": file}))

    def _read_and_finish(self) -> Fence | None:
        """Read the fence, and rename the file that it commits, unless that is done."""
        try:
            held: dict[str, Any] = json.loads(self._fence.read_text())
        except FileNotFoundError:
            return None
        fence = Fence(**{name: value for name, value in held.items() if name != "file"})
        part_file = self._own / f"{held['file']}.{fence.owner}{_UNFINISHED}"
        if held["file"] and part_file.exists():
            target = self._folder / held["file"]
            if not target.exists():
                os.link(part_file, target)
            sync_folder(self._folder)
            part_file.unlink()
        return fence

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the fence; the lock of a process that dies is released."""
        until = time.monotonic() + _WAIT_S
        with self._fence.with_suffix(".lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        why = f"another process holds {lock.name!r}"
                        raise fault("STORE_UNREACHABLE", store=self.place.name, why=why) from None
                    time.sleep(_LOOK_EVERY_S)
            yield


if TYPE_CHECKING:
    Writer = tuple[Callable[[pa.Table], None], Callable[[], None]]
    """What writes rows, and what ends the file."""


def _parquet(file: BinaryIO, schema: pa.Schema, columns: Sequence[Column]) -> Writer:  # noqa: ARG001
    writer = pq.ParquetWriter(file, schema)
    return writer.write_table, writer.close


def _json(file: BinaryIO, schema: pa.Schema, columns: Sequence[Column]) -> Writer:  # noqa: ARG001
    def write(rows: pa.Table) -> None:
        file.write(b"\n".join(as_json(rows, columns)) + b"\n")

    return write, lambda: None


def _csv(file: BinaryIO, schema: pa.Schema, columns: Sequence[Column]) -> Writer:
    text = [column for column in columns if column.type in (NESTED, "binary")]
    for column in text:
        place = schema.get_field_index(column.name)
        schema = schema.set(place, pa.field(column.name, pa.string()))
    writer = csv.CSVWriter(file, schema)

    def write(rows: pa.Table) -> None:
        for column in text:
            place = rows.schema.get_field_index(column.name)
            rows = rows.set_column(place, column.name, pa.array(_texts(rows, column), pa.string()))
        writer.write_table(rows)

    return write, writer.close


def _texts(rows: pa.Table, column: Column) -> list[str | None]:
    """Return nested values as JSON, and bytes as base64."""
    objects = (row[column.name] for row in as_objects(rows, [column], nulls=True))
    texts = (None if value is None else encode(value).decode() for value in objects)
    return [text if text is None or column.type == NESTED else text.strip('"') for text in texts]


_FORMATS = {"parquet": _parquet, "json": _json, "csv": _csv}


@contextmanager
def _translating_errors(place: Place) -> Iterator[None]:
    """Translate errors of the file system into errors of Millstream."""
    try:
        yield
    except OSError as error:
        why = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
        if error.errno in TRANSIENT:
            raise fault("STORE_UNREACHABLE", store=place.name, why=why) from error
        raise fault("STORE_FAILED", store=place.name, why=why) from error
