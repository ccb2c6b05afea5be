"""History as it is read: batches, events and runs, by any process, while a driver writes them."""

from __future__ import annotations

import sqlite3
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from millstream.model.duration import UNIX_EPOCH
from millstream.observe.history_file import DamagedHistoryError, is_damage, open_for_reading
from millstream.observe.history_row import (
    BATCH_COLUMNS,
    EVENT_COLUMNS,
    batch_of,
    event_of,
    from_us,
    last_of,
    run_of,
    to_us,
    totals_of,
)
from millstream.observe.record import Sums, rolled_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from millstream.observe.record import BatchRecord, EventRecord, RunRecord, Totals

_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


class History:
    """What happened to an app; empty if there is no file, or if it is damaged.

    Threads may share it. If the driver begins a new file, the next call reads that one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self.damage: str | None = None
        """Why the file cannot be read; None if it can, or is not there yet."""

    @staticmethod
    def read_only(path: Path) -> History:
        """Read a history; the file need not be there yet."""
        return History(path)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def newest_id(self) -> int:
        """Return a number that grows with everything that is written."""
        found = self._rows("SELECT number FROM writing")
        return int(found[0][0]) if found else 0

    def datasets(self) -> tuple[str, ...]:
        """Name the datasets that have had a batch."""
        return tuple(str(n) for (n,) in self._rows("SELECT name FROM dataset ORDER BY name"))

    def last(self, dataset: str) -> BatchRecord | None:
        """Return the last batch of a dataset."""
        found = self._rows("SELECT last FROM dataset WHERE name = ?", dataset)
        return last_of(dataset, found[0][0]) if found else None

    def lasts(self) -> Mapping[str, BatchRecord]:
        """Return the last batch of every dataset."""
        found = self._rows("SELECT name, last FROM dataset")
        records = ((name, last_of(name, text)) for name, text in found)
        return {name: record for name, record in records if record}

    def totals(self) -> Mapping[str, Totals]:
        """Return what the batches of every dataset add up to since history began."""
        found = self._rows("SELECT name, totals FROM dataset")
        return {name: totals_of(text) for name, text in found}

    def batches(
        self,
        dataset: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        most: int | None = None,
    ) -> tuple[BatchRecord, ...]:
        """Return the batches committed in a time range, the earliest first.

        If there are more than `most`, those of equal stretches of time are rolled up. Old batches
        are rolled up in any case, by the minute or the hour.
        """
        found = self._rows(
            f"SELECT {BATCH_COLUMNS} FROM batch WHERE at BETWEEN ? AND ?"
            " AND dataset = (SELECT id FROM dataset WHERE name = ?) ORDER BY at",
            to_us(since or UNIX_EPOCH),
            to_us(until or _LATEST),
            dataset,
        )
        records = tuple(batch_of(dataset, row) for row in found)
        return records if most is None or len(records) <= most else _thinned(records, most)

    def sums(
        self, dataset: str, *, since: datetime, until: datetime, parts: int
    ) -> tuple[Sums, ...]:
        """Add up the rows of a dataset over equal parts of a time range, quickly."""
        start, part = to_us(since), max((to_us(until) - to_us(since)) // parts, 1)
        found = self._rows(
            "SELECT (at - ?) / ?, sum(batches), sum(input), sum(output), max(behind_rows),"
            " max(behind_s) FROM batch WHERE dataset = (SELECT id FROM dataset WHERE name = ?)"
            " AND at >= ? AND at < ? GROUP BY 1",
            start,
            part,
            dataset,
            start,
            start + part * parts,
        )
        by_part = {int(number): values for number, *values in found}
        return tuple(
            Sums(from_us(start + n * part), *by_part.get(n, (0, 0, 0, None, None)))
            for n in range(parts)
        )

    def first_beyond(self, dataset: str, total: int) -> datetime | None:
        """Return when a dataset first had more output rows than so many."""
        found = self._rows(
            "SELECT min(at) FROM batch"
            " WHERE dataset = (SELECT id FROM dataset WHERE name = ?) AND total > ?",
            dataset,
            total,
        )
        return from_us(found[0][0]) if found and found[0][0] is not None else None

    def events(
        self,
        *,
        after_id: int = 0,
        since: datetime | None = None,
        dataset: str | None = None,
        most: int = 100,
    ) -> tuple[EventRecord, ...]:
        """Return the last events that match, the latest first."""
        found = self._rows(
            f"SELECT id, {EVENT_COLUMNS} FROM event"
            " WHERE id > ? AND at >= ? AND (? IS NULL OR dataset = ?) ORDER BY id DESC LIMIT ?",
            after_id,
            to_us(since or UNIX_EPOCH),
            dataset,
            dataset,
            most,
        )
        return tuple(event_of(row) for row in found)

    def runs(self, *, most: int = 100) -> tuple[RunRecord, ...]:
        """Return the last runs, the latest first."""
        found = self._rows(
            "SELECT id, started_at, ended_at, rest FROM run ORDER BY id DESC LIMIT ?", most
        )
        return tuple(run_of(row) for row in found)

    def _rows(self, query: str, *values: object) -> Sequence[Any]:
        with self._lock:
            try:
                connection = self._opened()
                return connection.execute(query, values).fetchall() if connection else ()
            except DamagedHistoryError as error:
                self.damage = str(error)
            except sqlite3.DatabaseError as error:
                self._close()
                self.damage = str(error) if is_damage(error) else None
            except FileNotFoundError:
                pass
            return ()

    def _opened(self) -> sqlite3.Connection | None:
        """Return a connection to the file that is there now."""
        try:
            inode = self.path.stat().st_ino
        except OSError:
            inode = None
        if inode != self._inode or self._connection is None:
            self._close()
            self.damage = None
            self._connection = open_for_reading(self.path) if inode else None
            self._inode = inode
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._inode = None


def _thinned(records: Sequence[BatchRecord], most: int) -> tuple[BatchRecord, ...]:
    """Roll up the batches of equal stretches of time."""
    first, last = records[0].at, records[-1].at
    part = max((last - first) / most, timedelta(microseconds=1))
    parts: dict[int, list[BatchRecord]] = {}
    for record in records:
        parts.setdefault(min(int((record.at - first) / part), most - 1), []).append(record)
    return tuple(rolled_up(part) for part in parts.values())
