"""State of a program: for each batch a version of it, in buckets of keys, written by the workers.

A version is a folder. It gets its name when all its buckets are written: what has the name is
complete, and a batch that runs again uses it as it is.
"""

from __future__ import annotations

import re
import shutil
from bisect import bisect_left, insort
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.core.rdd import Partitioner, portable_hash

from millstream.crash import reach
from millstream.dstream.bucket import read_elements, write_elements
from millstream.lake.durable import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pyspark import RDD, SparkContext

    from millstream.dstream.home import StreamHome

    Update = Callable[[Iterable[Any], Iterator[Any]], Iterable[Any]]
    """Makes the elements of the next version of a bucket: from the last, and from new rows."""

_VERSION = re.compile(r"(\d+)\.(\d+)")
_STATE = "state"
_EMITTED = "emitted"


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """The state at the end of one batch."""

    ms: int
    """The time of the batch."""
    buckets: int
    folder: Path

    def bucket(self, index: int, kind: str = _STATE) -> Path:
        """Where the elements of one bucket are."""
        return self.folder / f"{kind}-{index:05d}"


class Emitting:
    """An update that also returns elements: those of the stream that `mapWithState` makes."""

    def __init__(self, update: Callable[..., Iterable[Any]]) -> None:
        self.update = update


class VersionedState:
    """The versions of one state."""

    def __init__(self, context: SparkContext, home: StreamHome, number: int) -> None:
        self._context, self._home, self._number = context, home, number
        self._folder = home.state(number)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._versions = sorted(self._found())

    def at(self, ms: int) -> Version | None:
        """Return the version of a batch; None if it was not written."""
        place = bisect_left(self._versions, ms, key=_ms)
        found = self._versions[place : place + 1]
        return found[0] if found and found[0].ms == ms else None

    def before(self, ms: int) -> Version | None:
        """Return the last version before a time."""
        place = bisect_left(self._versions, ms, key=_ms)
        return self._versions[place - 1] if place else None

    def write(
        self, ms: int, buckets: int, rows: RDD[Any] | None, update: Update | Emitting
    ) -> Version:
        """Compute the version of a batch from the one before it and from new pairs.

        Args:
            ms: The time of the batch.
            buckets: Number of buckets; keys are spread over them as pyspark spreads them.
            rows: The new pairs, in any partitions.
            update: What becomes of one bucket.
        """
        last = self.before(ms)
        spread = self._spread(last, buckets) if last and last.buckets != buckets else None
        draft = self._draft(ms, buckets)
        durable = self._home.is_durable
        write = partial(
            _write_bucket, last=spread or last, draft=draft, update=update, durable=durable
        )
        self._placed(rows, buckets).mapPartitionsWithIndex(write).count()
        if spread is not None:
            shutil.rmtree(spread.folder)
        return self._keep(draft)

    def start_with(self, ms: int, buckets: int, pairs: RDD[Any]) -> None:
        """Write a first version, unless there is one."""
        if not self._versions:
            self.write(ms, buckets, pairs, _first)

    def pairs(self, version: Version) -> RDD[Any]:
        """Read the pairs of a version."""
        return self._read(version, _STATE, is_keyed=True)

    def emitted(self, version: Version) -> RDD[Any]:
        """Read what a function returned while it computed a version."""
        return self._read(version, _EMITTED, is_keyed=False)

    def forget(self, before_ms: int) -> None:
        """Delete versions from before a time, but the last."""
        while len(self._versions) > 1 and self._versions[0].ms < before_ms:
            shutil.rmtree(self._versions.pop(0).folder, ignore_errors=True)

    def _read(self, version: Version, kind: str, *, is_keyed: bool) -> RDD[Any]:
        indices = self._context.parallelize(range(version.buckets), version.buckets)
        rdd = indices.mapPartitionsWithIndex(
            partial(_read_bucket, version=version, kind=kind), preservesPartitioning=True
        )
        if is_keyed:
            # Joins and reductions by key then need no shuffle.
            rdd.partitioner = Partitioner(version.buckets, portable_hash)
        return rdd

    def _placed(self, rows: RDD[Any] | None, buckets: int) -> RDD[Any]:
        if rows is None or not rows.getNumPartitions():
            return self._context.parallelize([], buckets)
        return rows.partitionBy(buckets)

    def _spread(self, last: Version, buckets: int) -> Version:
        # A copy without a name, for one batch: windows still read the version itself.
        draft = self._draft(last.ms, buckets)
        pairs = self._read(last, _STATE, is_keyed=False).partitionBy(buckets)
        write = partial(_write_bucket, last=None, draft=draft, update=_first, durable=False)
        pairs.mapPartitionsWithIndex(write).count()
        return draft

    def _draft(self, ms: int, buckets: int) -> Version:
        draft = Version(ms, buckets, self._folder / f"{ms}.{buckets}.tmp")
        shutil.rmtree(draft.folder, ignore_errors=True)
        draft.folder.mkdir()
        return draft

    def _keep(self, draft: Version) -> Version:
        name = str(self._number)
        reach("state_staged", self._home.path, name, draft.ms)
        self._home.lease.hold()
        folder = draft.folder.with_suffix("")
        if self._home.is_durable:
            sync_folder(draft.folder)
        draft.folder.replace(folder)
        if self._home.is_durable:
            sync_folder(self._folder)
        version = Version(draft.ms, draft.buckets, folder)
        insort(self._versions, version)
        reach("state_kept", self._home.path, name, draft.ms)
        return version

    def _found(self) -> Iterator[Version]:
        for folder in self._folder.iterdir():
            if named := _VERSION.fullmatch(folder.name):
                yield Version(int(named[1]), int(named[2]), folder)
            else:
                shutil.rmtree(folder)


def _ms(version: Version) -> int:
    return version.ms


def _first(last: Iterable[Any], rows: Iterator[Any]) -> Iterable[Any]:  # noqa: ARG001
    # Of two pairs of one key, the first counts, as in pyspark.
    pairs: dict[Any, Any] = {}
    for key, value in rows:
        pairs.setdefault(key, value)
    return pairs.items()


def _write_bucket(
    index: int,
    rows: Iterator[Any],
    *,
    last: Version | None,
    draft: Version,
    update: Update | Emitting,
    durable: bool,
) -> Iterator[int]:
    held = read_elements(last.bucket(index)) if last is not None else iter(())
    if isinstance(update, Emitting):
        emitted: list[Any] = []
        pairs = update.update(held, rows, emitted.append)
        yield write_elements(draft.bucket(index), pairs, durable=durable)
        write_elements(draft.bucket(index, _EMITTED), emitted, durable=durable)
    else:
        yield write_elements(draft.bucket(index), update(held, rows), durable=durable)


def _read_bucket(
    index: int,
    _: Iterator[Any],
    *,
    version: Version,
    kind: str,
) -> Iterator[Any]:
    return read_elements(version.bucket(index, kind))
