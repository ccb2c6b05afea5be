"""Files that a source could not read: set aside by name, and read again when somebody asks."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from millstream.lake.durable import write_durably

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file of which no row has landed, and why."""

    path: str
    reason: str
    batch: int
    """The batch that was to read it."""


@dataclass(frozen=True, slots=True)
class UnreadableFiles:
    """The files of one source that are set aside, recorded in its folder of the home.

    The driver alone writes the record. Who wants a file to be read again leaves a request.
    """

    folder: Path

    def read(self) -> tuple[UnreadableFile, ...]:
        """Return the files that are set aside, by path."""
        return tuple(UnreadableFile(**file) for file in _read(self._record))

    def of_batch(self, batch: int) -> frozenset[str]:
        """Return the paths that a batch leaves out, each time it is read."""
        return frozenset(file.path for file in self.read() if file.batch == batch)

    def add(self, files: Iterable[UnreadableFile]) -> None:
        """Set files aside, on disk when this returns."""
        known = {file.path: file for file in (*self.read(), *files)}
        self._write(known.values())

    def forget(self, paths: Collection[str]) -> None:
        """Take files off the record, and the request to read any again."""
        self._write(file for file in self.read() if file.path not in paths)
        self._request.unlink(missing_ok=True)

    def request(self, paths: Iterable[str]) -> None:
        """Ask the driver to read files again: the running one, or the next."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_durably(self._request, json.dumps(sorted({*self.requested, *paths})))

    @property
    def requested(self) -> frozenset[str]:
        """The paths that are to be read again."""
        return frozenset(_read(self._request))

    def _write(self, files: Iterable[UnreadableFile]) -> None:
        ordered = sorted(files, key=lambda file: file.path)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_durably(self._record, json.dumps([*map(asdict, ordered)], indent=1) + "\n")

    @property
    def _record(self) -> Path:
        return self.folder / "unreadable.json"

    @property
    def _request(self) -> Path:
        return self.folder / "read-again.json"


def _read(file: Path) -> list:  # type: ignore[type-arg]
    try:
        return list(json.loads(file.read_text()))
    except FileNotFoundError:
        return []
