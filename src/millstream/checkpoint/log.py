"""The offset and commit logs of one streaming query, and the files its source has read."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
        if not file.exists():
            return None
        return str(json.loads(file.read_text())["id"])

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
        lines = (self.path / "offsets" / str(self.planned)).read_text().splitlines()
        return int(json.loads(lines[1])["batchWatermarkMs"])

    def planned_at_ms(self, batch: int) -> int:
        """When a batch was planned, in milliseconds since 1970; the same for every retry."""
        lines = (self.path / "offsets" / str(batch)).read_text().splitlines()
        return int(json.loads(lines[1])["batchTimestampMs"])

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators that keep state, as Spark calls them."""
        found = (self.path / "state").glob("*/_metadata/metadata")
        return tuple(
            json.loads(f.read_text().splitlines()[1])["operatorInfo"]["operatorName"] for f in found
        )

    def make_durable(self, batch: int) -> None:
        """Force the offsets of a batch to disk, before its output is.

        Spark never does: an output that survives a power cut while its offsets do not would be
        computed anew from other offsets, under the same batch number.
        """
        _sync(self.path / "offsets" / str(batch))
        _sync(self.path / "offsets")


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
        for line in file.read_text().splitlines()[1:]:
            # Other sources keep other things here: Kafka its first offsets, rate its start.
            match json.loads(line):
                case {"path": str(path), "timestamp": int(read_at_ms)}:
                    yield unquote(urlsplit(path).path), read_at_ms


def _latest(log: Path) -> int:
    if not log.exists():
        return -1
    return max((int(file.name) for file in log.iterdir() if file.name.isdigit()), default=-1)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
