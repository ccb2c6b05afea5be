"""Records that cannot be read again from their source: kept in files, in order, until landed."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.lake.durable import sync_folder, sync_written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_MOST_UNLANDED = 2
_KEPT = 10
"""Landed files that stay for a while: a batch may be replayed after a crash."""
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Room:
    """How much may wait while a batch lands: as many records as the next batch can take."""

    records: int = 100_000
    batch_s: float = 1.0
    """How long the batch that is under way takes, by the last one: then there is room again."""


class Inbox:
    """Accepts the records of a source, in order; they are acknowledged when they are landed.

    Whatever arrives while a batch lands goes into one file, and so into one batch: a slow landing
    takes larger batches, not longer queues, up to what a batch takes within its target. Files are
    numbered within the epoch of the driver, so that what an overtaken one still writes
    acknowledges nothing here.
    """

    def __init__(
        self,
        place: Path,
        *,
        epoch: int,
        landed: Callable[[], str],
        room: Callable[[], Room] = Room,
    ) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self._place, self._epoch, self._landed, self._room = place, epoch, landed, room
        self._files: list[str] = []
        self._records: dict[str, int] = {}
        """How many records the files have that may not be landed."""
        self._next = 0
        self._waiting: list[bytes] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    @property
    def place(self) -> Path:
        """The folder of its files, which the landing reads."""
        return self._place

    @property
    def is_closed(self) -> bool:
        """Whether no more records are accepted, because the app stops."""
        return self._is_closed

    def put(self, *records: str | bytes) -> None:
        """Add records, one or more lines each, and return when they are landed.

        Raises:
            InboxClosedError: The app stops, and they may or may not be landed.
        """
        file = self.offer(*records)
        with self._changed:
            while not self.has_landed(file):
                self._refuse_if_closed()
                self._changed.wait(_LOOK_EVERY_S)

    def offer(self, *records: str | bytes) -> str:
        """Add records without waiting for them; return the name of the file they will be in.

        Raises:
            InboxClosedError: The app stops.
        """
        lines = _lines(records)
        with self._changed:
            # That a file is landed is found by looking.
            while self._is_full and not self._is_closed:
                self._changed.wait(_LOOK_EVERY_S)
            return self._add(lines)

    def try_offer(self, *records: str | bytes) -> str | None:
        """Add records as `offer` does; None if more wait than the next batch can take.

        Raises:
            InboxClosedError: The app stops.
        """
        lines = _lines(records)
        with self._changed:
            self._refuse_if_closed()
            return None if self._is_full else self._add(lines)

    def has_landed(self, file: str) -> bool:
        """Return whether the records of a file are landed."""
        return self._landed() >= file

    def wait(self, seconds: float) -> None:
        """Pause, unless the app stops before."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)

    def close(self) -> None:
        """Accept no more; records not landed yet are kept for the next run, unacknowledged."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    @property
    def waiting(self) -> int:
        """How many records wait for the batch after the one that is under way."""
        landed = self._landed()
        unlanded = [file for file in self._files if file > landed]
        return len(self._waiting) + sum(self._records[file] for file in unlanded[1:])

    @property
    def room_in_s(self) -> float:
        """After how many seconds a sender that was refused should try again."""
        return self._room().batch_s

    @property
    def _is_full(self) -> bool:
        return self.waiting >= self._room().records

    def _add(self, lines: Sequence[bytes]) -> str:
        self._refuse_if_closed()
        self._waiting += lines
        self._changed.notify_all()
        return self._name(self._next) if lines else ""

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise fault("INBOX_CLOSED", source=self._place.name)

    def _write_all(self) -> None:
        with self._changed:
            while not self._is_closed:
                if not self._waiting:
                    self._changed.wait()
                elif self._unlanded >= _MOST_UNLANDED:
                    self._changed.wait(_LOOK_EVERY_S)
                else:
                    self._write_waiting()
                    self._changed.notify_all()
                    self._forget()
            if self._waiting:
                self._write_waiting()

    def _write_waiting(self) -> None:
        self._write(self._waiting)
        self._waiting = []

    @property
    def _unlanded(self) -> int:
        landed = self._landed()
        return sum(file > landed for file in self._files)

    def _write(self, lines: Sequence[bytes]) -> None:
        draft, file = self._place / ".draft", self._name(self._next)
        with draft.open("wb") as out:
            out.writelines(line + b"\n" for line in lines)
            out.flush()
            # Spark orders files by age, to the millisecond; two of one instant would have no order.
            age_ns = (self._epoch * 10**9 + self._next) * 10**6
            os.utime(draft, ns=(age_ns, age_ns))
            sync_written(out)
        draft.replace(self._place / file)
        sync_folder(self._place)
        self._records[file] = len(lines)
        self._files.append(file)
        self._next += 1

    def _forget(self) -> None:
        landed = self._landed()
        while len(self._files) > _KEPT and self._files[0] <= landed:
            file = self._files.pop(0)
            del self._records[file]
            (self._place / file).unlink(missing_ok=True)

    def _name(self, number: int) -> str:
        return f"{self._epoch:08d}-{number:012d}.txt"


def _lines(records: Sequence[str | bytes]) -> list[bytes]:
    raw = (record.encode() if isinstance(record, str) else record for record in records)
    return [line for each in raw for line in each.replace(b"\r\n", b"\n").split(b"\n") if line]
