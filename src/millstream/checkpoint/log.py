"""The offset and commit logs of one streaming query, and the files its source has read."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from millstream.checkpoint.entry import Offsets, parse_file_log, parse_operator, parse_query_id
from millstream.checkpoint.state import newest_described
from millstream.errors import fault
from millstream.lake.durable import sync_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Entry = TypeVar("Entry")

WAITING = frozenset({"transformWithStateInPandasExec", "symmetricHashJoin"})
"""Operators that may keep a row beyond the watermark: keyed state in Python, and joins by a time
bound. Ours tell for how long; of a join in Spark's own words nobody does."""

# A file may be stamped a moment after it was listed; Spark stores whole milliseconds.
_MTIME_SLACK_MS = 1000


@dataclass(frozen=True, slots=True)
class CheckpointLog:
    """One query's checkpoint folder."""

    path: Path

    @property
    def query_id(self) -> str | None:
        """The identity Spark gave the query at its first start; None before that."""
        file = self.path / "metadata"
        return self._read(file, parse_query_id) if file.exists() else None

    @property
    def planned(self) -> int:
        """The last batch whose offsets are logged; -1 if none."""
        return _latest(self.path / "offsets")

    @property
    def committed(self) -> int:
        """The last batch Spark has marked as done; -1 if none."""
        return _latest(self.path / "commits")

    @property
    def watermark_ms(self) -> int:
        """The watermark of the last planned batch, in milliseconds since 1970; 0 before any."""
        if self.planned < 0:
            return 0
        return self.offsets(self.planned).watermark_ms

    def planned_at_ms(self, batch: int) -> int:
        """When a batch was planned, in milliseconds since 1970; the same for every retry."""
        return self.offsets(batch).planned_at_ms

    def offsets(self, batch: int) -> Offsets:
        """Where a planned batch ends; the same for every retry."""
        return self._read(self.path / "offsets" / str(batch), Offsets.parse)

    def brought_nothing(self, batch: int) -> bool:
        """Whether a batch read what the one before had read, at the same watermark."""
        if batch < 1:
            return False
        here, before = self.offsets(batch), self.offsets(batch - 1)
        return (here.ends, here.watermark_ms) == (before.ends, before.watermark_ms)

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators that keep state, as Spark calls them."""
        found: list[Path] = []
        for operator in (self.path / "state").glob("[0-9]*"):
            found += newest_described(operator) or operator.glob("_metadata/metadata")
        return tuple(self._read(file, parse_operator) for file in found)

    def make_durable(self, batch: int) -> None:
        """Force the offsets of a batch to disk, before its output is.

        Spark never does: an output that survives a power cut while its offsets do not would be
        computed anew from other offsets, under the same batch number.
        """
        sync_file(self.path / "offsets" / str(batch))
        sync_folder(self.path / "offsets")

    def _read(self, file: Path, parse: Callable[[bytes], Entry]) -> Entry:
        try:
            return parse(file.read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            home = self.path.parent.parent
            raise fault(
                "CHECKPOINT_DAMAGED",
                query=self.path.name,
                file=str(file),
                why=str(error),
                home=str(home),
            ) from error


def changed_files(checkpoint: Path) -> Iterator[str]:
    """Name the files a file source has read that were replaced or truncated since.

    Spark reads a path once: what is in such a file now is not read.
    """
    for path, read_at_ms in _files_read(checkpoint / "sources" / "0"):
        try:
            changed = os.stat(path).st_mtime * 1000 > read_at_ms + _MTIME_SLACK_MS
        except FileNotFoundError:
            continue
        if changed:
            yield path


def _files_read(log: Path) -> Iterator[tuple[str, int]]:
    for file in sorted(log.glob("[0-9]*")) if log.exists() else ():
        # Other sources keep other things here; and entries that matter are looked at elsewhere.
        with suppress(ValueError, KeyError, TypeError):
            for read in parse_file_log(file.read_bytes()):
                yield unquote(urlsplit(read.path).path), read.timestamp


def _latest(log: Path) -> int:
    if not log.exists():
        return -1
    return max((int(file.name) for file in log.iterdir() if file.name.isdigit()), default=-1)
