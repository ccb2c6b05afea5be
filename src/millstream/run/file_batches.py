"""What the batches of a file source read: the files that Spark planned, but for unreadable ones.

A file that cannot be read is recorded, on disk, before anything of its batch is committed. The
batch then consists of the other files each time it is read, whatever becomes of that one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.checkpoint import files_of_batch, forget_files
from millstream.lake.unreadable import UnreadableFile
from millstream.observe import Event
from millstream.run.query import StreamRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint import CheckpointLog
    from millstream.lake.unreadable import UnreadableFiles
    from millstream.model.connector import FileReading
    from millstream.run.supervise import Running

_LOOK_EVERY_S = 1.0
_AT_ONCE = 64
"""Files that are tried in one job: few enough that an unreadable one costs little."""


@dataclass(slots=True)
class ReadableFiles:
    """The files of one source's batches, without those that are set aside."""

    connector: FileReading
    spark: SparkSession
    log: CheckpointLog
    record: UnreadableFiles
    on_event: Callable[[Event], None]
    _look_at: float = field(default=0.0, init=False)

    def forget_requested(self) -> None:
        """Before the query starts: have Spark find the files that are to be read again."""
        if requested := self.record.requested:
            forget_files(self.log.path, requested)
            self.record.forget(requested)

    def is_outdated(self) -> bool:
        """Whether files are to be read again, for which the query must start anew."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        return bool(self.record.requested)

    def begin(self, frame: DataFrame, batch: int) -> DataFrame:
        """Return the rows of a batch that was never committed, without the files it leaves out."""
        refused = {p: why for p in self._left(batch) if (why := self.connector.refusal(p))}
        self._set_aside(refused, batch)
        return self.again(frame, batch)

    def again(self, frame: DataFrame, batch: int) -> DataFrame:
        """Return the rows of a batch as they were, or will be, committed."""
        return self._rows(frame, batch) if self.record.of_batch(batch) else frame

    def without_unreadable(
        self, frame: DataFrame, batch: int, error: BaseException
    ) -> DataFrame | None:
        """Set the unreadable files of a failed batch aside and return the rows of the others.

        Returns None if the batch did not fail because of a file.
        """
        if self.connector.unreadable(error) is None:
            return None
        found = dict(self._failing(self._left(batch)))
        if not found:
            return None
        self._set_aside(found, batch)
        return self._rows(frame, batch)

    def _left(self, batch: int) -> list[str]:
        aside = self.record.of_batch(batch)
        return [path for path in files_of_batch(self.log, batch) if path not in aside]

    def _rows(self, frame: DataFrame, batch: int) -> DataFrame:
        if paths := self._left(batch):
            return self.connector.read_files(self.spark, paths)
        return self.spark.createDataFrame([], frame.schema)

    def _failing(self, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Read files to their end; name those where that fails."""
        for start in range(0, len(paths), _AT_ONCE):
            left = list(paths[start : start + _AT_ONCE])
            while left and (found := self._first_failing(left)):
                left.remove(found[0])
                yield found

    def _first_failing(self, paths: Sequence[str]) -> tuple[str, str] | None:
        try:
            rows = self.connector.read_files(self.spark, paths)
            rows.write.format("noop").mode("overwrite").save()
        except Exception as error:
            found = self.connector.unreadable(error)
            if found is None or found[0] not in paths:
                raise
            return found
        return None

    def _set_aside(self, reasons: Mapping[str, str], batch: int) -> None:
        if not reasons:
            return
        self.record.add(UnreadableFile(path, why, batch) for path, why in reasons.items())
        for path, why in reasons.items():
            self.on_event(Event("file_set_aside", self.log.path.name, f"{path}: {why}"))


def has_files_to_read_again(running: Running) -> bool:
    """Whether a query is to be started again, so that it finds files that were set aside."""
    if not isinstance(running, StreamRun) or running.files is None or not running.is_active:
        return False
    return not running.ends_by_itself and running.files.is_outdated()
