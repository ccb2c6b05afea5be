"""Rows of somebody erased from a home: tables, their earlier versions, copies, deliveries."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from millstream.alert.deliveries import Deliveries
from millstream.checkpoint import CheckpointLog
from millstream.checkpoint.checksum import write_sealed
from millstream.errors import fault, listed
from millstream.lake.compaction import rewritten
from millstream.lake.delta import FencedTable
from millstream.lake.durable import sync_file, sync_folder, write_durably
from millstream.lake.home import QUARANTINE
from millstream.lake.log import files_added
from millstream.lake.retention import Retention, choose_cut, cut
from millstream.lake.rows import live_rows
from millstream.lake.stored import name_of
from millstream.model.dataset import Serve
from millstream.upkeep.readers import other_readers, settled_readers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from millstream.lake.condition import OwnRows
    from millstream.lake.deletion_vector import Positions
    from millstream.lake.files import DataFile
    from millstream.lake.lease import Lease
    from millstream.lake.stored import StoredFile
    from millstream.model.graph import Graph


_SEARCHED = 5
"""How many characters a value has at least that is searched for."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was erased, and what may still have it; it has no value of the condition."""

    at: str
    columns: tuple[str, ...]
    """The columns of the condition."""
    condition: str
    """A hash of it, so that a receipt can be recognised by who knows the condition."""
    rows: Mapping[str, int]
    """How many rows were erased, by table."""
    without_columns: tuple[str, ...]
    """Tables that lack a column of the condition: they were left as they are."""
    notices: int = 0
    """Deliveries of alerts that were erased."""
    states: tuple[str, ...] = ()
    """Queries that keep state of keys, which cannot be erased row by row."""
    served: tuple[str, ...] = ()
    """Answers that are in stores outside the home."""
    not_searched: tuple[str, ...] = ()
    """Columns whose values are too short to be searched for: any file may have the bytes."""
    found: tuple[str, ...] = ()
    """Files of the home in which a value of the condition is still found."""
    is_done: bool = False


class Forgetting:
    """The erasure of the rows of somebody from a home that no driver runs in."""

    def __init__(self, graph: Graph, lease: Lease, name: str, rows: OwnRows) -> None:
        self._graph, self._lease, self._home, self._rows = graph, lease, lease.home, rows
        related = {name, *graph.upstream(name), *graph.downstream(name)}
        whole = {*related, *(f"{each}{QUARANTINE}" for each in related)}
        self._names = [each for each in self._home.tables if each in whole]
        self._related = related

    def count(self) -> Receipt:
        """Count what would be erased; nothing is changed."""
        rows: dict[str, int] = {}
        for name in self._names:
            path = self._home.table(name)
            table = FencedTable(path, name=name, epoch=self._lease.epoch)
            files = table.stored()
            deleted = table.deleted(files)
            rows[name] = sum(_own(path, file, self._rows, deleted.get(file.path)) for file in files)
        datasets = [
            self._graph.datasets[name] for name in sorted(self._related & {*self._graph.datasets})
        ]
        digest = hashlib.sha256(json.dumps(dict(self._rows.values), sort_keys=True).encode())
        return Receipt(
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            columns=tuple(self._rows.values),
            not_searched=tuple(n for n, v in self._rows.values.items() if len(v) < _SEARCHED),
            condition=digest.hexdigest(),
            rows={name: number for name, number in rows.items() if number},
            without_columns=tuple(name for name in self._names if not self._has_columns(name)),
            states=tuple(sorted(d.name for d in datasets if self._keeps_state(d.name))),
            served=tuple(d.name for d in datasets if isinstance(d, Serve)),
        )

    def erase(self) -> Receipt:
        """Erase them, and everything that only earlier versions have.

        Raises:
            FORGET_READERS: A query has not read all that is there.
        """
        self._refuse_if_behind()
        receipt = self.count()
        for name in self._names:
            self._erase_from(name)
        self._erase_copies()
        notices = self._erase_notices()
        found = tuple(str(file.relative_to(self._home.path)) for file in self._still_found())
        receipt = replace(receipt, notices=notices, found=found, is_done=not found)
        folder = self._home.path / "receipts"
        folder.mkdir(exist_ok=True)
        name = f"forget-{receipt.at.replace(':', '')}-{receipt.condition[:12]}.json"
        write_durably(folder / name, json.dumps(asdict(receipt), indent=1) + "\n")
        return receipt

    def _refuse_if_behind(self) -> None:
        behind = [
            repr(reader.query)
            for name in self._names
            for reader in settled_readers(self._home, self._graph, name)
            if _brings_rows(self._home.table(name), reader.version)
        ]
        if behind:
            raise fault("FORGET_READERS", readers=listed(sorted({*behind})))

    def _has_columns(self, name: str) -> bool:
        fields = DeltaTable(str(self._home.table(name))).schema().fields
        return {*self._rows.values} <= {field.name for field in fields}

    def _keeps_state(self, name: str) -> bool:
        return (self._home.checkpoint(name) / "state").exists()

    def _erase_from(self, name: str) -> None:
        path, staging = self._home.table(name), self._home.maintenance / "staging"
        table = FencedTable(path, name=name, epoch=self._lease.epoch)
        files = table.stored()
        # The bytes of deleted rows are still in their files.
        own = [file for file in files if _own(path, file, self._rows)]
        if own:
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir(parents=True)
            written: dict[str, DataFile] = {}
            deleted = table.deleted(own)
            for file in own:
                kept = rewritten(path, (file,), staging, _others(file, self._rows), deleted)
                written |= {name_of((file,), table.epoch): each for each in kept}
            table.rewrite(own, written, deleted)
        others = [*other_readers(self._home, name)]
        if own or not others:
            # Earlier versions are cut here: from them on, no commit brings a row.
            table.take()
            table.checkpoint()
        id_ = str(table.snapshot().metadata().id)
        for reader in settled_readers(self._home, self._graph, name):
            _advance(CheckpointLog(self._home.checkpoint(reader.query)), id_, table.version)
        readers = [*settled_readers(self._home, self._graph, name), *others]
        cut(table, choose_cut(path, Retention(timedelta(0)), readers).first)

    def _erase_copies(self) -> None:
        """Erase from what is kept beside the tables: staged batches, answers, reference data."""
        for name in self._related:
            shutil.rmtree(self._home.staging(name), ignore_errors=True)
            for folder in (self._home.changes(name), self._home.references(name)):
                for file in sorted(folder.rglob("*.parquet")):
                    _erase_from_file(file, self._rows)

    def _erase_notices(self) -> int:
        deliveries = Deliveries.existing(self._home.alerts)
        if deliveries is None:
            return 0
        try:
            return deliveries.erase(self._rows.fits)
        finally:
            deliveries.close()

    def _still_found(self) -> Iterator[Path]:
        values = self._rows.values.values()
        wanted = [value.encode() for value in values if len(value) >= _SEARCHED]
        for file in sorted(self._home.path.rglob("*")):
            if file.is_file() and any(
                value in text for text in _contents(file) for value in wanted
            ):
                yield file


def _own(path: Path, file: StoredFile, rows: OwnRows, deleted: Positions | None = None) -> int:
    import pyarrow.parquet as pq

    # Rows that were set aside have no day; they may have the value in what was received.
    if any(file.partition.get(name) not in (None, value) for name, value in rows.values.items()):
        return 0
    others = _others(file, rows)
    with pq.ParquetFile(path / file.path) as opened:
        return sum(
            batch.num_rows - others(batch).num_rows
            for batch in live_rows(opened.iter_batches(use_threads=False), deleted)
        )


def _others(file: StoredFile, rows: OwnRows) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    return lambda batch: rows.others(batch, file.partition)


def _erase_from_file(file: Path, rows: OwnRows) -> None:
    """Erase rows from a file that is in no table."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(file).read()
    kept = [rows.others(batch, {}) for batch in table.to_batches()]
    if sum(batch.num_rows for batch in kept) == table.num_rows:
        return
    temporary = file.with_name(f".{file.name}.tmp")
    with pq.ParquetWriter(temporary, table.schema, compression="zstd") as written:
        for batch in kept:
            written.write_batch(batch)
    sync_file(temporary)
    # Spark's checksum of the file is that of its former content.
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    temporary.replace(file)
    sync_folder(file.parent)


def _brings_rows(path: Path, version: int) -> bool:
    """Return whether any version after one brings a row."""
    latest = DeltaTable(str(path)).version()
    return any(files_added(path, number) != () for number in range(version + 1, latest + 1))


def _advance(log: CheckpointLog, id_: str, version: int) -> None:
    """Have a stream begin after a version: none that it leaves out brings a row.

    When Spark starts, it looks once more at what the last batch has read, from where the one
    before ended.
    """
    last = log.committed
    if last < 0:
        return
    # Without its end a batch would be done again, from versions that are gone.
    sync_file(log.path / "commits" / str(last))
    sync_folder(log.path / "commits")
    for batch in (last - 1, last):
        file = log.path / "offsets" / str(batch)
        offsets = log.offsets(batch) if file.exists() else None
        if offsets is None:
            continue
        ends = tuple(_advanced(end, id_, version) for end in offsets.ends)
        if ends != offsets.ends:
            write_sealed(file, replace(offsets, ends=ends).to_text())


def _advanced(end: str, id_: str, version: int) -> str:
    found = json.loads(end) if end.startswith("{") else {}
    if found.get("reservoirId") != id_:
        return end
    return json.dumps({**found, "reservoirVersion": version + 1, "index": -1})


def _contents(file: Path) -> Iterator[bytes]:
    """Read a file as it is; of Parquet, what is in it as well."""
    yield file.read_bytes()
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        for batch in pq.ParquetFile(file).iter_batches(use_threads=False):
            yield str(batch.to_pylist()).encode()
