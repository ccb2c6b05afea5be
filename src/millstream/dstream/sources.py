"""Where rows come from: what arrives until a batch is planned belongs to it."""

from __future__ import annotations

import glob
import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from millstream.dstream.program import here
from millstream.errors import fault
from millstream.lake.durable import sync_written, write_durably

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark import RDD, SparkContext

    from millstream.dstream.events import Events

_FILES_PER_TASK = 4
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_PATTERN = re.compile(r"([\\{}\[\]*?^])")


class OpenSource(Protocol):
    """A source while its program runs."""

    def plan(self) -> Any:
        """Describe in JSON what arrived since the last call; it can be read again from now on."""
        ...

    def rdd(self, part: Any) -> RDD[Any]:
        """Read a part again."""
        ...

    def rows(self, part: Any) -> int:
        """Return how many rows a part has, as far as it is known without reading them."""
        ...

    def forget(self, part: Any) -> None:
        """Delete what is kept of a part: nothing reads it again."""
        ...

    def close(self) -> None:
        """Receive no more."""
        ...


@runtime_checkable
class Settling(Protocol):
    """An open source that a test can wait for."""

    def settle(self) -> None:
        """Wait until all that is there belongs to the next batch."""
        ...


class BatchSource(Protocol):
    """A source as it is declared."""

    def open(
        self, context: SparkContext, place: Path, parts: Sequence[Any], events: Events
    ) -> OpenSource:
        """Open it for a run.

        Args:
            context: Reads what arrived.
            place: A folder of the home, for it alone.
            parts: Those of the batches that the home has; the last one always is among them.
            events: Where the start, the errors and the end of a receiver are reported.
        """
        ...


@dataclass(frozen=True, eq=False)
class QueueSource:
    """RDDs that the program has: the position in the queue is what a batch is planned with."""

    rdds: Sequence[RDD[Any]]
    one_at_a_time: bool
    default: RDD[Any] | None

    def open(
        self,
        context: SparkContext,
        place: Path,  # noqa: ARG002
        parts: Sequence[Any],
        events: Events,  # noqa: ARG002
    ) -> OpenSource:
        """Continue where the last batch ended."""
        return _OpenQueue(self, context, int(parts[-1][1]) if parts else 0)


class _OpenQueue:
    def __init__(self, queue: QueueSource, context: SparkContext, position: int) -> None:
        self._queue, self._context, self._position = queue, context, position

    def plan(self) -> list[int]:
        begin, end = self._position, len(self._queue.rdds)
        self._position = min(begin + 1, end) if self._queue.one_at_a_time else end
        return [begin, self._position]

    def rdd(self, part: Any) -> RDD[Any]:
        begin, end = part
        rdds = list(self._queue.rdds[begin:end])
        if not rdds:
            default = self._queue.default
            return self._context.parallelize([], 1) if default is None else default
        return rdds[0] if self._queue.one_at_a_time else self._context.union(rdds)

    def rows(self, part: Any) -> int:  # noqa: ARG002
        return 0

    def forget(self, part: Any) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, eq=False)
class FolderSource:
    """Files that appear in a folder; those that were there before are no part of the stream."""

    folder: str
    read: Callable[[SparkContext, str], RDD[Any]]
    """Reads files, whose names are separated by commas."""
    old: frozenset[str] = field(default_factory=frozenset)

    @staticmethod
    def of(
        operation: str, folder: str, read: Callable[[SparkContext, str], RDD[Any]]
    ) -> FolderSource:
        """Note which files are there now.

        Raises:
            DSTREAM_ARGUMENT: The folder is not one of this machine.
        """
        if (scheme := _SCHEME.match(folder)) and scheme[1] != "file":
            raise fault(
                "DSTREAM_ARGUMENT",
                at=here(),
                operation=operation,
                why=f"{folder!r} is not a folder of this machine",
                use="read it with spark.readStream and ssc.dataFrameStream",
            )
        local = os.path.abspath(folder.removeprefix("file://").removeprefix("file:"))
        return FolderSource(local, read, frozenset(_files(local)))

    def open(
        self,
        context: SparkContext,
        place: Path,
        parts: Sequence[Any],
        events: Events,  # noqa: ARG002
    ) -> OpenSource:
        """Continue with the files that no batch has; those of a pause are among them."""
        return _OpenFolder(self, context, place, parts)


class _OpenFolder:
    """The files of batches that the home forgets are noted, a line for each batch."""

    def __init__(
        self, source: FolderSource, context: SparkContext, place: Path, parts: Sequence[Any]
    ) -> None:
        self._source, self._context = source, context
        place.mkdir(parents=True, exist_ok=True)
        self._log = place / "seen"
        noted = _noted(self._log) if self._log.exists() else source.old
        found = frozenset(_files(source.folder))
        # A folder without any file may be one that is not mounted yet.
        noted = noted & found if found else noted
        write_durably(self._log, json.dumps(sorted(noted)) + "\n")
        self._seen = {*noted, *(name for part in parts for name in part)}

    def plan(self) -> list[str]:
        found = sorted(name for name in _files(self._source.folder) if name not in self._seen)
        self._seen.update(found)
        return found

    def rdd(self, part: Any) -> RDD[Any]:
        if not part:
            return self._context.emptyRDD()
        rdd = self._source.read(self._context, ",".join(map(hadoop_path, part)))
        # After a pause there may be hundreds, and a task for each would take longer than its file.
        tasks = self._context.defaultParallelism
        return rdd.coalesce(tasks) if len(part) > _FILES_PER_TASK * tasks else rdd

    def rows(self, part: Any) -> int:  # noqa: ARG002
        return 0

    def forget(self, part: Any) -> None:
        if part:
            with self._log.open("a") as log:
                log.write(json.dumps(part) + "\n")
                sync_written(log)

    def close(self) -> None: ...


def _noted(log: Path) -> frozenset[str]:
    # A last line without its end was being written when the driver died; the journal has its batch.
    lines = [line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return frozenset(name for line in lines for name in json.loads(line))


def hadoop_path(file: str) -> str:
    """Name a file as Hadoop reads it, which takes commas and patterns for more than themselves."""
    escaped = _PATTERN.sub(r"\\\1", file).replace(",", "{\\,}")
    return f"file://{escaped}"


def _files(folder: str) -> list[str]:
    folders = glob.glob(folder) if glob.has_magic(folder) else [folder]
    return [
        entry.path
        for each in folders
        if os.path.isdir(each)
        for entry in os.scandir(each)
        if not entry.name.startswith((".", "_")) and entry.is_file()
    ]
