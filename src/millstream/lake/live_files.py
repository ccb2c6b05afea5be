"""The files of a table with their deletion vectors, which delta-rs does not name: from its log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from millstream.lake.deletion_vector import NOTHING, Vector
from millstream.lake.log import actions_of, checkpoint_path, checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from millstream.lake.deletion_vector import Positions

_KINDS = ("protocol", "metaData", "remove", "add")
"""In the order in which those of one commit count: a file that is removed may be added again."""
_MAPS = ("partitionValues", "configuration", "options", "tags")
"""What Arrow reads as a list of pairs."""


@dataclass(slots=True)
class LiveFiles:
    """What a table consists of at a version, read on from commit to commit."""

    table: Path
    version: int = -1
    adds: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The actions that added its files, by their paths as the log writes them."""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    _read: dict[Vector, Positions] = field(default_factory=dict)

    @staticmethod
    def at(table: Path, version: int) -> LiveFiles:
        """Read a table from its last checkpoint on.

        Raises:
            FileNotFoundError: The log does not reach back to a checkpoint.
        """
        live = LiveFiles(table)
        live.advance(version)
        return live

    def advance(self, version: int) -> None:
        """Read on, up to a version.

        Raises:
            FileNotFoundError: Commits in between are gone.
        """
        begins = [v for v in checkpoints(self.table) if v <= version] if self.version < 0 else []
        if begins:
            self._start(max(begins))
        while self.version < version:
            found: list[tuple[str, Mapping[str, Any]]] = list(
                actions_of(self.table, self.version + 1, _KINDS)
            )
            for kind, action in sorted(found, key=lambda each: _KINDS.index(each[0])):
                self._apply(kind, action)
            self.version += 1
        current = {vector for path in self.adds if (vector := self.vector(path))}
        self._read = {vector: found for vector, found in self._read.items() if vector in current}

    def vector(self, path: str) -> Vector | None:
        """Return the deletion vector of a file, if it has one."""
        return Vector.from_log(self.adds[path].get("deletionVector"))

    def deleted(self, path: str) -> Positions:
        """Return the deleted positions of a file."""
        vector = self.vector(path)
        if vector is None:
            return NOTHING
        if vector not in self._read:
            self._read[vector] = vector.read(self.table)
        return self._read[vector]

    def hold(self, vector: Vector, positions: Positions) -> None:
        """Spare the next version to read what was just written."""
        self._read[vector] = positions

    def counts(self) -> dict[str, int]:
        """Count the deleted rows of each file that has any."""
        vectors = ((path, self.vector(path)) for path in self.adds)
        return {path: vector.count for path, vector in vectors if vector}

    def paths(self) -> Iterable[Path]:
        """Return all files on disk, those of the deletion vectors too."""
        for path in self.adds:
            yield self.table / unquote(path)
            vector = self.vector(path)
            if vector and (file := vector.file(self.table)):
                yield file

    def _start(self, version: int) -> None:
        import pyarrow.parquet as pq

        checkpoint = pq.ParquetFile(checkpoint_path(self.table, version))
        there = [kind for kind in _KINDS if kind in checkpoint.schema_arrow.names]
        self.adds, self.version = {}, version
        for row in checkpoint.read([kind for kind in there if kind != "remove"]).to_pylist():
            for kind, action in row.items():
                if action is not None:
                    self._apply(kind, _plain(action))

    def _apply(self, kind: str, action: Mapping[str, Any]) -> None:
        match kind:
            case "protocol":
                self.protocol = action
            case "metaData":
                self.metadata = action
            case "remove":
                self.adds.pop(action["path"], None)
            case "add":
                self.adds[action["path"]] = action


def _plain(action: Mapping[str, Any]) -> dict[str, Any]:
    """Write an action of a checkpoint as commits do: without nulls, with mappings."""
    plain: dict[str, Any] = {}
    for name, value in action.items():
        if name in _MAPS and value is not None:
            plain[name] = dict(value)
        elif isinstance(value, dict):
            plain[name] = _plain(value)
        elif value is not None:
            plain[name] = value
    return plain
