"""The files that a table consists of, in the order in which their batches were written."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from deltalake import DeltaTable

_BATCH = re.compile(r"batch-(\d+)-.*\.parquet")
_BATCHES = re.compile(r"batches-(\d+)-(\d+)-.*\.parquet")
INDEX_FOLDER = "_index"
"""Where the keys of large files are indexed, in the folder of a table."""
_SAFE = re.compile(r"[\w.=-]+")
"""What the log writes as it is; other characters are encoded there."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a table, as its log describes it."""

    path: str
    size: int
    rows: int
    modified_ms: int
    partition: Mapping[str, str | None]
    batches: tuple[int, int] | None
    """The first and the last batch that it has rows of; None if another program wrote it."""
    deleted: int = 0
    """How many of its rows are deleted where they are."""

    @property
    def order(self) -> tuple[tuple[int, int], int, str]:
        """Sort files of one partition by it: by batch, else as Spark reads a snapshot."""
        return self.batches or (-1, -1), self.modified_ms, self.path


def stored_files(table: DeltaTable) -> tuple[StoredFile, ...]:
    """List the files of a table, those of each partition in the order of their batches."""
    actions: Any = table.get_add_actions()
    names = tuple(table.metadata().partition_columns)
    known = ("path", "size_bytes", "num_records", "modification_time")
    columns = (actions.column(name).to_pylist() for name in known)
    files = [
        StoredFile(path, size, rows or 0, modified, partition, batches_of(path))
        for path, size, rows, modified, partition in zip(
            *columns, _partitions(actions, names), strict=True
        )
    ]
    return tuple(sorted(files, key=lambda file: (str(file.partition), file.order)))


def batches_of(name: str) -> tuple[int, int] | None:
    """Return the first and the last batch of a file, by its name.

    >>> (
    ...     batches_of("batch-00000007-3-0000.parquet"),
    ...     batches_of("batches-00000001-00000007-3.parquet"),
    ... )
    ((7, 7), (1, 7))
    >>> batches_of("part-00000-c000.parquet")
    """
    if one := _BATCH.fullmatch(name):
        return int(one[1]), int(one[1])
    several = _BATCHES.fullmatch(name)
    return (int(several[1]), int(several[2])) if several else None


def name_of(files: tuple[StoredFile, ...], epoch: int) -> str:
    """Name what files become together; no other file ever gets the name."""
    moment = time.time_ns()
    known = [*chain.from_iterable(file.batches for file in files if file.batches)]
    if len(known) < 2 * len(files):
        return f"part-{epoch}-{moment}.parquet"
    return f"batches-{min(known):08d}-{max(known):08d}-{epoch}-{moment}.parquet"


def indexed_file(path: Path) -> str:
    """Return the name of the data file of which an index is.

    >>> from pathlib import Path
    >>> indexed_file(Path("_index/part-1.parquet.0f0f0f0f"))
    'part-1.parquet'
    """
    name, ending, _ = path.name.partition(".parquet")
    return name + ending


def is_safe(file: StoredFile) -> bool:
    """Return whether the log has the path of a file as it is on disk."""
    return bool(_SAFE.fullmatch(file.path))


def _partitions(actions: Any, names: tuple[str, ...]) -> list[dict[str, str | None]]:
    from millstream.lake.parquet import partition_text

    if not names:
        return [{} for _ in range(actions.num_rows)]
    column = actions.column("partition").to_pylist()
    return [{name: partition_text(values[name]) for name in names} for values in column]
