"""A checkpoint folder as it is found: what can be read of its logs, and why the rest cannot."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from millstream.checkpoint.checksum import read_seal
from millstream.checkpoint.entry import (
    CommitEntry,
    FileRead,
    Offsets,
    parse_file_log,
    parse_query_id,
    parse_source_start,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Entry = TypeVar("Entry")

COMPACT_EVERY = 10
"""How often Spark writes all files read so far into one entry of the file log."""

_NAME = re.compile(r"(\d+)(\.compact)?")
_COMPACT = ".compact"


@dataclass(frozen=True, slots=True)
class MetadataLog(Generic[Entry]):
    """One log: its entries by number, and why others cannot be read."""

    sound: Mapping[int, Entry]
    faults: Mapping[int, str]

    @property
    def last(self) -> int:
        """The last entry, readable or not; -1 if there is none."""
        return max((*self.sound, *self.faults), default=-1)

    @property
    def first(self) -> int:
        """The first entry, readable or not; 0 if there is none."""
        return min((*self.sound, *self.faults), default=0)

    def fault(self, number: int) -> str | None:
        """Return why an entry cannot be used; None if it can."""
        return None if number in self.sound else self.faults.get(number, "it is missing")


@dataclass(frozen=True)
class CheckpointFolder:
    """The checkpoint folder of one query."""

    path: Path

    @cached_property
    def query_id(self) -> str | None:
        """The identity of the query, if it can be read."""
        found = _read(self.path / "metadata", parse_query_id)
        return None if isinstance(found, _Fault) else found

    @cached_property
    def metadata_fault(self) -> str | None:
        """Why the identity cannot be read."""
        found = _read(self.path / "metadata", parse_query_id)
        return found.why if isinstance(found, _Fault) else None

    @cached_property
    def offsets(self) -> MetadataLog[Offsets]:
        """What was planned, batch by batch."""
        return _log(self.path / "offsets", Offsets.parse)

    @cached_property
    def ends(self) -> Mapping[int, Offsets]:
        """Where batches ended, as far as it is known for certain."""
        return {n: o for n, o in self.offsets.sound.items() if not o.is_stand_in}

    @cached_property
    def commits(self) -> MetadataLog[CommitEntry]:
        """What was done, batch by batch."""
        return _log(self.path / "commits", CommitEntry.parse)

    @cached_property
    def files(self) -> MetadataLog[tuple[FileRead, ...]]:
        """What a file source has read; empty for other sources."""
        return _log(self._source, parse_file_log) if self.reads_files else MetadataLog({}, {})

    @cached_property
    def source_start(self) -> MetadataLog[str]:
        """What another source recorded at its first start; empty for files."""
        return MetadataLog({}, {}) if self.reads_files else _log(self._source, parse_source_start)

    @cached_property
    def reads_files(self) -> bool:
        """Whether the source is one of files."""
        if self.offsets.sound:
            return self.offsets.sound[max(self.offsets.sound)].log_offset is not None
        return any(b'"path":' in file.read_bytes() for file in self._source.glob("[0-9]*"))

    @cached_property
    def is_stateful(self) -> bool:
        """Whether any operator keeps state."""
        return (self.path / "state").exists()

    def file_name(self, number: int) -> str:
        """Name an entry of the file log."""
        compacted = self._compacted
        every = compacted[-1] - compacted[-2] if len(compacted) > 1 else COMPACT_EVERY
        is_compact = number in compacted or (number + 1) % every == 0
        return f"{number}{_COMPACT}" if is_compact else str(number)

    @property
    def needed_files(self) -> range:
        """The entries of the file log that must be there: from the last compacted one on."""
        ends = (offsets.log_offset for offsets in self.offsets.sound.values())
        last = max((self.files.last, *(end for end in ends if end is not None)))
        first = last
        while first > 0 and not self.file_name(first).endswith(_COMPACT):
            first -= 1
        return range(max(first, 0), last + 1)

    @property
    def _source(self) -> Path:
        return self.path / "sources" / "0"

    @cached_property
    def _compacted(self) -> list[int]:
        return sorted(int(f.name.removesuffix(_COMPACT)) for f in self._source.glob("[0-9]*.*"))


@dataclass(frozen=True, slots=True)
class _Fault:
    why: str


def _log(folder: Path, parse: Callable[[bytes], Entry]) -> MetadataLog[Entry]:
    sound: dict[int, Entry] = {}
    faults: dict[int, str] = {}
    for file in folder.iterdir() if folder.exists() else ():
        if name := _NAME.fullmatch(file.name):
            found = _read(file, parse)
            if isinstance(found, _Fault):
                faults[int(name[1])] = found.why
            else:
                sound[int(name[1])] = found
    return MetadataLog(sound, faults)


def _read(file: Path, parse: Callable[[bytes], Entry]) -> Entry | _Fault:
    try:
        found = parse(file.read_bytes())
    except FileNotFoundError:
        return _Fault("it is missing")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return _Fault(_words(error))
    # A file that reads well may have been changed all the same.
    return _Fault("it is not what its checksum says") if read_seal(file) == "broken" else found


def _words(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not text"
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)
