"""Lines that a receiver gets: on disk before a batch is planned with them."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from millstream.dstream.sources import hadoop_path
from millstream.errors import InboxClosedError, MillstreamError, fault
from millstream.lake.durable import sync_folder, sync_written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import IO

    from pyspark import RDD, SparkContext

    from millstream.dstream.events import Events
    from millstream.dstream.sources import OpenSource

_LOG = logging.getLogger(__name__)

_RESTART_AFTER_S = 2.0
"""As long as Spark waits before it starts a receiver again."""
_LOOK_EVERY_S = 0.02


class Receives(Protocol):
    """A source that hands lines over, such as `ms.Socket`."""

    def receive(self, inbox: Any) -> None:
        """Hand over lines until the inbox is closed."""
        ...


@dataclass(frozen=True, eq=False)
class ReceivedSource:
    """A receiver, in a thread of the driver."""

    receiver: Receives
    name: str
    number: int

    def open(
        self, context: SparkContext, place: Path, parts: Sequence[Any], events: Events
    ) -> OpenSource:
        """Start to receive; what a killed driver had received is part of the next batch."""
        return _OpenReceiver(self, context, place, parts, events)


class ReceivedLines:
    """The inbox of a receiver: it appends lines to a file, and a batch takes the file."""

    def __init__(self, place: Path, *, first: int, name: str) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self._place, self._number, self._name = place, first, name
        self._changed = threading.Condition()
        self._file: IO[bytes] | None = None
        self._rows = 0
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether no more lines are accepted."""
        return self._is_closed

    def offer(self, *records: str | bytes) -> str:
        """Append records, a line each or several; return the name of their file.

        Raises:
            InboxClosedError: The program stops.
        """
        lines = [line for record in records for line in _lines(record)]
        with self._changed:
            if self._is_closed:
                raise fault("INBOX_CLOSED", source=self._name)
            if lines:
                self._file = self._file or (self._place / self._current).open("wb")
                self._file.writelines(lines)
                # In Python's memory they would die with the driver.
                self._file.flush()
                self._rows += len(lines)
            return self._current

    def try_offer(self, *records: str | bytes) -> str | None:
        """Append records as `offer` does; a file has room for all."""
        return self.offer(*records)

    def put(self, *records: str | bytes) -> None:
        """Append records and return when a batch is planned with them.

        Raises:
            InboxClosedError: The program stops, and they may be in no batch yet.
        """
        name = self.offer(*records)
        with self._changed:
            while not self.has_landed(name):
                if self._is_closed:
                    raise fault("INBOX_CLOSED", source=self._name)
                self._changed.wait(_LOOK_EVERY_S)

    def has_landed(self, file: str) -> bool:
        """Return whether a file was taken for a batch."""
        return file < self._current

    def wait(self, seconds: float) -> None:
        """Pause, unless the program stops before."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)

    def take(self) -> list[Any]:
        """Close the file that lines are appended to; return its name and its number of lines."""
        with self._changed:
            self._close_file()
            if not self._rows:
                return []
            taken = [self._current, self._rows]
            self._rows, self._number = 0, self._number + 1
            return [taken]

    def close(self) -> None:
        """Accept no more lines; those that were accepted are on disk."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            sync_written(self._file)
            self._file.close()
            self._file = None
            sync_folder(self._place)

    @property
    def _current(self) -> str:
        return f"{self._number:012d}.txt"


class _OpenReceiver:
    def __init__(
        self,
        source: ReceivedSource,
        context: SparkContext,
        place: Path,
        parts: Sequence[Any],
        events: Events,
    ) -> None:
        self._source, self._context, self._place, self._events = source, context, place, events
        planned = {name for part in parts for name, _ in part}
        found = sorted(file.name for file in place.glob("*.txt")) if place.exists() else []
        last = max(planned, default="")
        self._left = [[name, 0] for name in found if name > last]
        first = int(max([*found, last, "-1.txt"]).removesuffix(".txt")) + 1
        self._inbox = ReceivedLines(place, first=first, name=source.name)
        self._thread = threading.Thread(target=self._receive, daemon=True, name="dstream receiver")
        self._thread.start()

    def plan(self) -> list[Any]:
        left, self._left = self._left, []
        return [*left, *self._inbox.take()]

    def rdd(self, part: Any) -> RDD[Any]:
        tasks = self._context.defaultParallelism
        files = [hadoop_path(str(self._place / name)) for name, _ in part]
        rdds = [self._context.textFile(file, tasks) for file in files]
        return self._context.union(rdds) if rdds else self._context.emptyRDD()

    def rows(self, part: Any) -> int:
        return sum(rows for _, rows in part)

    def forget(self, part: Any) -> None:
        for name, _ in part:
            (self._place / name).unlink(missing_ok=True)

    def close(self) -> None:
        self._inbox.close()
        # A listener that stops the program may run in this thread.
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _receive(self) -> None:
        number, name = self._source.number, self._source.name
        while not self._inbox.is_closed:
            self._events.receiver_started(number, name)
            error = self._receive_once()
            if error is not None:
                _LOG.warning("%s: %s; it starts again in %s s", name, error, _RESTART_AFTER_S)
                self._events.receiver_error(number, name, error)
                self._inbox.wait(_RESTART_AFTER_S)
        self._events.receiver_stopped(number, name)

    def _receive_once(self) -> Exception | None:
        try:
            self._source.receiver.receive(self._inbox)
        except InboxClosedError:
            return None
        except (MillstreamError, OSError) as error:
            return error
        return None


def _lines(record: str | bytes) -> list[bytes]:
    raw = record.encode() if isinstance(record, str) else record
    return [line + b"\n" for line in raw.split(b"\n")] if raw else []
