"""Where the rows of keys are: an index of each data file, made once and never changed.

A data file never changes, so neither does its index: an ascending list of the keys' hashes, each
with the position of its row. It says where a row was written, not whether it is deleted. Of a small
file it is kept in memory, of a large one in the folder `_index` of the table, where no Delta client
looks. Nothing is lost with it: it is made again from the file.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from millstream.lake.durable import sync_file, sync_folder
from millstream.lake.stored import INDEX_FOLDER

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from pathlib import Path

    import duckdb
    import pyarrow as pa
    from numpy.typing import NDArray

    from millstream.lake.deletion_vector import Positions

_IN_MEMORY_ROWS = 65_536
_MOST_IN_MEMORY = 8_000_000
"""Rows of small files, at 16 bytes each: of more, those least used are read again."""
_LOW = 0xFFFFFFFF
_ALONE: dict[str, str | bool | int | float | list[str]] = {"threads": 1}
"""In the thread that asks, which may have the lowest priority: a batch is not delayed."""
_MAGIC = b"millstream-keys-1"
_HEAD = struct.Struct("<17sQI")
_PLAIN = ("string", "byte", "short", "integer", "long", "boolean", "date", "binary")
_TIMES = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class Hashes:
    """The keys of rows, each as 96 bits of its MD5 hash: no two keys have the same by accident."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.high)

    def __getitem__(self, some: slice) -> Hashes:
        return Hashes(self.high[some], self.low[some])


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The keys of one file, by their hashes in ascending order."""

    keys: Hashes
    rows: Positions
    """Beside each hash, the position of the row."""

    @staticmethod
    def of(keys: Hashes) -> FileIndex:
        """Sort the keys of the rows of a file."""
        order = np.argsort(keys.high, kind="stable").astype(np.uint32)
        return FileIndex(Hashes(keys.high[order], keys.low[order]), order)

    def find(self, wanted: Hashes) -> Positions:
        """Return the positions of all rows that have one of the keys, ascending."""
        first = np.searchsorted(self.keys.high, wanted.high, "left")
        last = np.searchsorted(self.keys.high, wanted.high, "right")
        counts = last - first
        # One after the other all places that have the first half of a hash: rarely more than one.
        starts = np.repeat(first - np.append(0, np.cumsum(counts)[:-1]), counts)
        places = starts + np.arange(counts.sum())
        is_same = self.keys.low[places] == np.repeat(wanted.low, counts)
        return np.unique(np.asarray(self.rows[places[is_same]], np.uint32))

    def write(self, path: Path) -> None:
        """Write it to a file, durably."""
        path.parent.mkdir(exist_ok=True)
        # A driver that was overtaken may be making the same.
        draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.draft")
        body = self.keys.high.tobytes(), self.keys.low.tobytes(), self.rows.tobytes()
        with draft.open("wb") as file:
            file.write(_HEAD.pack(_MAGIC, len(self.keys), _checksum(body)))
            file.writelines(body)
        sync_file(draft)
        draft.replace(path)
        sync_folder(path.parent)

    @staticmethod
    def read(path: Path, rows: int) -> FileIndex | None:
        """Map a file into memory; None if it is not there, or not as it was written."""
        try:
            with path.open("rb") as file:
                magic, count, checksum = _HEAD.unpack(file.read(_HEAD.size))
            mapped = np.memmap(path, np.uint8, "r", _HEAD.size)
        except (OSError, struct.error, ValueError):
            return None
        if magic != _MAGIC or count != rows or len(mapped) != 16 * rows:
            return None
        parts: Any = mapped[: 8 * rows], mapped[8 * rows : 12 * rows], mapped[12 * rows :]
        if _checksum(parts) != checksum:
            return None
        high, low, positions = parts
        return FileIndex(
            Hashes(high.view(np.uint64), low.view(np.uint32)), positions.view(np.uint32)
        )


class KeyIndex:
    """The indexes of the files of one table."""

    def __init__(
        self, table: Path, table_id: str, key: Sequence[str], kinds: Mapping[str, str]
    ) -> None:
        """Prepare them.

        Args:
            table: Where the table is.
            table_id: Nobody who chooses keys knows it, so nobody can choose two of one hash.
            key: Its key columns.
            kinds: Of each key column the type, as Delta names it.
        """
        self._table = table
        self._text = f"'{table_id}' || {_as_text(key, kinds)}"
        self._mark = f"{zlib.crc32(self._text.encode()):08x}"
        self._held: OrderedDict[str, FileIndex] = OrderedDict()

    def hashes(self, files: Sequence[Path]) -> Hashes:
        """Hash the keys of the rows of files, in their order."""
        import duckdb

        with duckdb.connect(config=_ALONE) as connection:
            source = "read_parquet(?, hive_partitioning = false)"
            return self._hashes(connection, source, [[str(file) for file in files]])

    def hashes_of(self, rows: pa.Table) -> Hashes:
        """Hash the keys of the rows of an Arrow table."""
        import duckdb

        with duckdb.connect(config=_ALONE) as connection:
            connection.register("changed", rows)
            return self._hashes(connection, "changed", [])

    def _hashes(
        self, connection: duckdb.DuckDBPyConnection, source: str, values: list[Any]
    ) -> Hashes:
        hashed = f"SELECT md5_number({self._text}) AS hash FROM {source}"
        halves = f"(hash >> 64)::UBIGINT AS high, (hash & {_LOW}::UHUGEINT)::UINTEGER AS low"
        found = connection.execute(f"SELECT {halves} FROM ({hashed})", values).fetchnumpy()
        return Hashes(
            np.ascontiguousarray(found["high"], np.uint64),
            np.ascontiguousarray(found["low"], np.uint32),
        )

    def of(self, name: str, rows: int) -> FileIndex:
        """Return the index of a file of so many rows; it is made if it is not there."""
        if name in self._held:
            self._held.move_to_end(name)
            return self._held[name]
        found = FileIndex.read(self._path(name), rows) if rows > _IN_MEMORY_ROWS else None
        if found is None:
            found = self.make(self._table / name, name)
        self.hold(name, found)
        return found

    def hold(self, name: str, index: FileIndex) -> None:
        """Keep the index of a file at hand; a large one only if it is mapped from its own file."""
        if len(index.keys) > _IN_MEMORY_ROWS and not isinstance(index.rows, np.memmap):
            return
        self._held[name] = index
        while sum(map(_in_memory, self._held.values())) > _MOST_IN_MEMORY:
            self._held.popitem(last=False)

    def make(self, file: Path, name: str) -> FileIndex:
        """Make the index of a file that is in the table by this name, or will be."""
        made = FileIndex.of(self.hashes([file]))
        rows = len(made.keys)
        if rows <= _IN_MEMORY_ROWS:
            return made
        made.write(self._path(name))
        return FileIndex.read(self._path(name), rows) or made

    def keep_only(self, names: Container[str]) -> None:
        """Let go of the indexes of files that are no longer in the table."""
        for name in [name for name in self._held if name not in names]:
            del self._held[name]

    def _path(self, name: str) -> Path:
        return self._table / INDEX_FOLDER / f"{name}.{self._mark}"


def joined(parts: Sequence[Hashes]) -> Hashes:
    """Put keys one after the other."""
    return Hashes(
        np.concatenate([part.high for part in parts]), np.concatenate([part.low for part in parts])
    )


def can_index(key: Iterable[str], kinds: Mapping[str, str]) -> bool:
    """Return whether equal keys of these types always have the same text, and others never."""
    return all(
        kinds.get(name) in (*_PLAIN, *_TIMES) or kinds.get(name, "").startswith("decimal")
        for name in key
    )


def _as_text(key: Sequence[str], kinds: Mapping[str, str]) -> str:
    """Write a key as DuckDB makes one text of it: no two keys have the same."""
    parts = []
    for name in key:
        doubled = name.replace('"', '""')
        column = f'"{doubled}"'
        if kinds[name] in _TIMES:
            column = f"epoch_us({column})"
        elif kinds[name] == "binary":
            column = f"hex({column})"
        text = f"{column}::VARCHAR"
        parts.append(f"coalesce(strlen({text}) || ':' || {text}, '-')")
    return " || ".join(parts)


def _in_memory(index: FileIndex) -> int:
    return len(index.keys) if len(index.keys) <= _IN_MEMORY_ROWS else 0


def _checksum(parts: Iterable[Any]) -> int:
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum
