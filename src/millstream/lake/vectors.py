"""An update table whose rows are deleted where they are: a change costs what it changes.

The new rows of a batch are a file of their own. Of each file that has a row of the same key, the
commit lists one more deleted position: docs/decisions/0026-deletion-vectors.md.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from millstream.lake.deletion_vector import NOTHING, write_vectors
from millstream.lake.key_index import FileIndex, KeyIndex, can_index, joined
from millstream.lake.live_files import LiveFiles
from millstream.lake.log import FEATURE, KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from deltalake.transaction import AddAction

    from millstream.lake.commit import Action
    from millstream.lake.deletion_vector import Positions
    from millstream.lake.files import DataFile
    from millstream.lake.key_index import Hashes

_ENABLED = "delta.enableDeletionVectors"
_WRITER_FEATURES = (
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
    FEATURE,
)
"""What a writer of version 4 had to know, and the new feature."""


class Vectors:
    """The files of a table, what is deleted in them and where its keys are, for its writer."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._files: LiveFiles | None = None
        self._index: tuple[str, KeyIndex] | None = None

    def files(self, version: int) -> LiveFiles:
        """Return the files of a version, which never is an earlier one than before."""
        if self._files is not None:
            try:
                self._files.advance(version)
            except FileNotFoundError:
                # What lies in between was deleted; a checkpoint has it.
                self._files = None
        if self._files is None:
            self._files = LiveFiles.at(self._table, version)
        return self._files

    def index(self, version: int) -> KeyIndex:
        """Return the index of the key for which the table is prepared."""
        metadata = self.files(version).metadata
        return self._index_of(metadata, json.loads(metadata["configuration"][KEY]))

    def can_prepare(self, version: int, key: Sequence[str]) -> bool:
        """Return whether the changes of a table can be written so."""
        live = self.files(version)
        is_plain = not live.metadata["partitionColumns"] and (
            live.protocol["minWriterVersion"] <= 4 or FEATURE in _features(live, "writerFeatures")
        )
        return is_plain and can_index(key, _kinds(live.metadata))

    def prepare(self, version: int, key: Sequence[str]) -> None:
        """Make the indexes that the first batch needs."""
        live = self.files(version)
        index = self._index_of(live.metadata, key)
        for path, add in live.adds.items():
            index.of(unquote(path), _rows(self._table, add))

    def enabled(self, version: int, key: Sequence[str]) -> list[Action]:
        """Return what has a table's changes written so from now on."""
        live = self.files(version)
        readers = sorted({*_features(live, "readerFeatures"), FEATURE})
        writers = sorted({*_features(live, "writerFeatures"), *_WRITER_FEATURES})
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": readers,
            "writerFeatures": writers,
        }
        more = {_ENABLED: "true", KEY: json.dumps(list(key))}
        metadata = {
            **live.metadata,
            "configuration": {**live.metadata["configuration"], **more},
        }
        return [("protocol", protocol), ("metaData", metadata)]

    def keys(self, version: int, files: Sequence[DataFile], gone: pa.Table | None) -> Hashes:
        """Hash the keys of new rows, then those of deleted ones."""
        index = self.index(version)
        parts = [index.hashes([file.path for file in files])] if files else []
        return joined([*parts, *([] if gone is None else [index.hashes_of(gone)])])

    def upserted(self, version: int, added: Sequence[AddAction], keys: Hashes) -> list[Action]:
        """Return what puts files in the place of all rows that have these keys."""
        live, index = self.files(version), self.index(version)
        deleted: dict[str, Positions] = {}
        for path, add in live.adds.items():
            found = index.of(unquote(path), _rows(self._table, add)).find(keys)
            before = live.deleted(path)
            more = found[~_contains(before, found)]
            if len(more):
                deleted[path] = np.insert(before, np.searchsorted(before, more), more)
        actions = self._deleted(live, deleted)
        index.keep_only({*map(unquote, live.adds)})
        begin = 0
        for new in added:
            rows = json.loads(new.stats)["numRecords"]
            index.hold(new.path, FileIndex.of(keys[begin : begin + rows]))
            begin += rows
        return [*actions, *(("add", _described(new)) for new in added)]

    def replaced(
        self, version: int, seen: Mapping[str, Positions | None], added: Sequence[AddAction]
    ) -> list[Action]:
        """Return what puts one file, or none, in the place of others.

        Args:
            version: The one after which it happens.
            seen: By its path, what of a file was left out, in the order of the rows.
            added: The file.
        """
        live = self.files(version)
        actions: list[Action] = []
        later: list[Positions] = []
        offset = 0
        for path, copied_without in seen.items():
            left_out = NOTHING if copied_without is None else copied_without
            add, now = live.adds[path], live.deleted(path)
            actions.append(("remove", _removed(add, is_change=False)))
            # A batch that was committed meanwhile has deleted rows that were copied.
            more = now[~_contains(left_out, now)]
            later.append((more - np.searchsorted(left_out, more) + offset).astype(np.uint32))
            offset += _rows(self._table, add) - len(left_out)
        deleted = np.concatenate(later) if later else NOTHING
        for new in added:
            described = {**_described(new), "dataChange": False}
            if len(deleted):
                vector = write_vectors(self._table, {new.path: deleted})[new.path]
                described = _with_vector(described, vector.to_log())
            actions.append(("add", described))
        return actions

    def _deleted(self, live: LiveFiles, deleted: Mapping[str, Positions]) -> list[Action]:
        whole = {p for p, gone in deleted.items() if len(gone) == _rows(self._table, live.adds[p])}
        kept = {path: gone for path, gone in deleted.items() if path not in whole}
        vectors = write_vectors(self._table, kept)
        actions: list[Action] = [
            ("remove", _removed(live.adds[path], is_change=True)) for path in deleted
        ]
        for path, vector in vectors.items():
            live.hold(vector, kept[path])
            add = {**live.adds[path], "dataChange": True}
            actions.append(("add", _with_vector(add, vector.to_log())))
        return actions

    def _index_of(self, metadata: Mapping[str, Any], key: Sequence[str]) -> KeyIndex:
        known = json.dumps([*key, metadata["id"], metadata["schemaString"]])
        if self._index is None or self._index[0] != known:
            index = KeyIndex(self._table, metadata["id"], key, _kinds(metadata))
            self._index = known, index
        return self._index[1]


def _features(live: LiveFiles, kind: str) -> list[str]:
    return list(live.protocol.get(kind) or ())


def _kinds(metadata: Mapping[str, Any]) -> dict[str, str]:
    fields = json.loads(metadata["schemaString"])["fields"]
    return {field["name"]: str(field["type"]) for field in fields}


def _rows(table: Path, add: Mapping[str, Any]) -> int:
    rows = json.loads(add.get("stats") or "{}").get("numRecords")
    if rows is None:
        import pyarrow.parquet as pq

        rows = pq.read_metadata(table / unquote(add["path"])).num_rows
    return int(rows)


def _contains(sorted_: Positions, wanted: Positions) -> Any:
    if not len(sorted_):
        return np.zeros(len(wanted), bool)
    places = np.minimum(np.searchsorted(sorted_, wanted), len(sorted_) - 1)
    return sorted_[places] == wanted


def _described(add: AddAction) -> dict[str, Any]:
    return {
        "path": add.path,
        "partitionValues": dict(add.partition_values),
        "size": add.size,
        "modificationTime": add.modification_time,
        "dataChange": add.data_change,
        "stats": add.stats,
    }


def _with_vector(add: Mapping[str, Any], vector: Mapping[str, Any]) -> dict[str, Any]:
    # The bounds of a column may be those of deleted rows.
    stats = {**json.loads(add.get("stats") or "{}"), "tightBounds": False}
    return {**add, "stats": json.dumps(stats), "deletionVector": dict(vector)}


def _removed(add: Mapping[str, Any], *, is_change: bool) -> dict[str, Any]:
    vector = add.get("deletionVector")
    return {
        "path": add["path"],
        "deletionTimestamp": time.time_ns() // 1_000_000,
        "dataChange": is_change,
        "extendedFileMetadata": True,
        "partitionValues": dict(add["partitionValues"]),
        "size": add["size"],
        **({} if vector is None else {"deletionVector": dict(vector)}),
    }
