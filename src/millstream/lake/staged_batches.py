"""Staged batches: each is kept until every store has it.

All stores get what was computed first: if a retry computed other rows after one store has the batch
and before another has, the two would disagree for ever.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.lake.durable import sync_file, write_durably
from millstream.lake.files import DataFile
from millstream.lake.staging import Staged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

_MANIFEST = "batch.json"
_PART_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class StagedBatches:
    """The folder where the batches of one query are staged."""

    folder: Path

    def kept(self, query_id: str, batch: int, columns: Sequence[str]) -> Staged | None:
        """Find a batch that was computed, with these columns, and not delivered to every store."""
        try:
            manifest = json.loads((self.folder / _MANIFEST).read_text())
        except FileNotFoundError:
            return None
        wanted = {"query_id": query_id, "batch": batch, "columns": list(columns)}
        if manifest | wanted != manifest:
            return None
        files = tuple(DataFile.read(self.folder / name, {}) for name in manifest["files"])
        return Staged(files, manifest["seen"], manifest["digest"])

    def has(self, query_id: str, batch: int) -> bool:
        """Return whether a batch was computed."""
        try:
            manifest = json.loads((self.folder / _MANIFEST).read_text())
        except FileNotFoundError:
            return False
        return bool((manifest["query_id"], manifest["batch"]) == (query_id, batch))

    def keep(self, staged: Staged, query_id: str, batch: int, columns: Sequence[str]) -> None:
        """Make a batch durable, as it is to be delivered."""
        for file in staged.files:
            sync_file(file.path)
        manifest = {
            "query_id": query_id,
            "batch": batch,
            "columns": list(columns),
            "digest": staged.digest,
            "seen": dict(staged.seen),
            "files": [file.path.name for file in staged.files],
        }
        # Staging empties the folder first: there is never an older manifest to be mistaken for it.
        write_durably(self.folder / _MANIFEST, json.dumps(manifest))


def read_parts(files: Sequence[DataFile]) -> Iterator[pa.Table]:
    """Read files part by part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        with pq.ParquetFile(file.path) as read:
            for batch in read.iter_batches(_PART_ROWS):
                yield pa.Table.from_batches([batch])
