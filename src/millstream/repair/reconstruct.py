"""Where a source had been read to, worked out from what has landed.

A landing keeps every row with the place it came from, so the offsets of its last batch and the list
of files read can be written again. What cannot be known for certain is refused.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from millstream.checkpoint.entry import FileRead, Offsets
from millstream.errors import MillstreamError, fault
from millstream.landing.landed import LandedBatch, landed_batches
from millstream.systems.files.source import Files
from millstream.systems.generator.source import Generator
from millstream.systems.kafka.settings import Kafka
from millstream.systems.memory.source import Memory
from millstream.systems.rate.source import Rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.checkpoint import Checkpoint
    from millstream.lake.home import Home
    from millstream.model.dataset import Source

_BLOCK = re.compile(r"@\d+$")
# Spark writes paths as Java does: these and whatever is not ASCII stay as they are.
_PLAIN = "/!$&'()*+,;=:@~"


@dataclass(frozen=True)
class LandingLog:
    """The checkpoint of a landing, and what its table knows of it."""

    source: Source
    home: Home
    checkpoint: Checkpoint

    def offsets(self, batch: int) -> Offsets:
        """Work out where a landed batch ended.

        Raises:
            CHECKPOINT_LOST: It cannot be known.
        """
        known = self.checkpoint.folder.ends
        near = known[min(known, key=lambda n: abs(n - batch))] if known else None
        landed = self._landed.get(batch)
        planned = landed.planned_at_ms if landed else near.planned_at_ms if near else 0
        conf = near.conf if near else {}
        return Offsets(0, planned, (self._end(batch),), conf)

    def has_landed(self, number: int) -> bool:
        """Whether an entry of the file log belongs to a batch that has landed."""
        return self._batch_of(number) is not None

    def entries(self, numbers: Sequence[int]) -> Mapping[int, tuple[FileRead, ...]]:
        """Work out which files entries of the file log name, so that none is read once more.

        A compacted entry names the files of all entries before it, too.
        """
        folder = self.checkpoint.folder
        kept = {n: e for n, e in folder.files.sound.items() if n in folder.needed_files}
        named = {_local(file.path) for entry in kept.values() for file in entry}
        rebuilt: dict[int, tuple[FileRead, ...]] = {}
        for number in sorted(numbers):
            batch = self._batch_of(number) or 0
            is_compact = folder.file_name(number).endswith(".compact")
            batches = range(batch + 1) if is_compact else range(batch, batch + 1)
            # The last one names all files that no other does: one that is not named is read again.
            rest = number == max(numbers)
            found = self._batches.items()
            paths = [p for p, b in found if (rest or b in batches) and p not in named]
            named.update(paths)
            rebuilt[number] = tuple(self._file(path, number) for path in paths)
        return rebuilt

    def _end(self, batch: int) -> str:
        match self.source.connector:
            case Files() | Memory():
                return json.dumps({"logOffset": self._log_offset(batch)}, separators=(",", ":"))
            case Kafka() as kafka:
                return json.dumps(self._positions(kafka, batch), separators=(",", ":"))
            case Rate(rows_per_second=rate) | Generator(rate=rate):
                return str(math.ceil((self._greatest(batch) + 1) / rate))
        raise self._lost(f"offsets/{batch}", "how far the source had been read")

    def _log_offset(self, batch: int) -> int:
        """Find the last entry of the file log with a file that landed in the batch."""
        folder = self.checkpoint.folder
        ends = {n: o.log_offset for n, o in folder.ends.items() if o.log_offset is not None}
        before = [n for n in ends if n < batch]
        least = ends[max(before)] + batch - max(before) if before else batch
        paths = set(self._paths(batch))
        found = [
            file.batch
            for entry in folder.files.sound.values()
            for file in entry
            if _local(file.path) in paths
        ]
        return max([least, *found])

    def _positions(self, kafka: Kafka, batch: int) -> dict[str, dict[str, int]]:
        """Find the offset after the last landed one, for each partition."""
        folder = self.checkpoint.folder
        before = [n for n in folder.ends if n < batch]
        start = folder.source_start.sound.get(0)
        base = folder.ends[max(before)].ends[0] if before else start
        if base is None and kafka.starting_offsets != "earliest":
            raise self._lost(f"offsets/{batch}", "where partitions without rows had begun")
        ends: dict[str, dict[str, int]] = json.loads(base) if base else {}
        for number, landed in self._landed.items():
            for origin, position in landed.origins.items() if number <= batch else ():
                topic, _, partition = origin.rpartition("/")
                known = ends.setdefault(topic, {}).get(partition, 0)
                ends[topic][partition] = max(known, (position or 0) + 1)
        return ends

    def _greatest(self, batch: int) -> int:
        positions = (
            position
            for number, landed in self._landed.items()
            for position in landed.origins.values()
            if number <= batch and position is not None
        )
        return max(positions, default=-1)

    def _batch_of(self, number: int) -> int | None:
        """Find the landed batch that an entry of the file log belongs to."""
        ends = self.checkpoint.folder.ends
        for batch in sorted(ends):
            end = ends[batch].log_offset
            if end is not None and number <= end:
                return batch if batch <= self.checkpoint.held.batch else None
        # Entries and batches have the same numbers, unless a driver died between the two.
        offset = max((b - (ends[b].log_offset or b) for b in ends), default=0)
        batch = number + offset
        return batch if batch <= self.checkpoint.held.batch else None

    def _file(self, path: str, number: int) -> FileRead:
        batch = self._batches[path]
        try:
            stamp = int(os.stat(path).st_mtime * 1000)
        except FileNotFoundError:
            stamp = self._landed[batch].planned_at_ms
        is_compact = self.checkpoint.folder.file_name(number).endswith(".compact")
        entry = min(batch, number) if is_compact else number
        return FileRead(f"file://{quote(path, safe=_PLAIN)}", stamp, entry)

    def _paths(self, batch: int) -> list[str]:
        return [path for path, landed in self._batches.items() if landed == batch]

    @cached_property
    def _batches(self) -> Mapping[str, int]:
        """The batch that each file with rows has landed in."""
        origins = {o: n for n in sorted(self._landed) for o in sorted(self._landed[n].origins)}
        if isinstance(self.source.connector, Memory):
            place = self.home.connector(self.source.name)
            return {str(place / origin): batch for origin, batch in origins.items()}
        paths = {o if Path(o).exists() else _BLOCK.sub("", o): n for o, n in origins.items()}
        if foreign := [path for path in paths if not path.startswith("/") or not path.isascii()]:
            raise self._lost("sources/0", f"how Spark had written {min(foreign)!r}")
        return paths

    @cached_property
    def _landed(self) -> Mapping[int, LandedBatch]:
        return landed_batches(self.home.table(self.source.name))

    def _lost(self, file: str, what: str) -> MillstreamError:
        path = str(self.checkpoint.path / file)
        return fault("CHECKPOINT_LOST", query=self.source.name, file=path, lost=what)


def _local(url: str) -> str:
    return unquote(urlsplit(url).path)
