"""How much history is kept: recent batches one by one, older ones by minute and by hour."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from millstream.observe.history_row import BATCH_COLUMNS, batch_of, batch_row, to_us
from millstream.observe.record import rolled_up

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from millstream.observe.record import BatchRecord

MINUTE, HOUR = 60, 3600
_FEWEST_DATASETS = 10


@dataclass(frozen=True, slots=True)
class HistoryLimit:
    """How much history is kept."""

    rows: int = 180_000
    """Batches, minutes and hours of all datasets together; each has the same share."""
    used_bytes: int = 90_000_000
    """Beyond this, the shares shrink."""
    events: int = 10_000
    runs: int = 1_000
    age: timedelta = timedelta(days=90)

    def of_each(self, datasets: int, scale: float = 1.0) -> Kept:
        """Return what is kept of each of so many datasets."""
        share = self.rows * scale / max(datasets, _FEWEST_DATASETS)
        return Kept(max(int(share / 3), 10), max(int(share * 0.4), 10), max(int(share * 0.27), 10))


@dataclass(frozen=True, slots=True)
class Kept:
    """How many rows are kept of a dataset."""

    batches: int
    minutes: int
    hours: int


def roll_up(connection: sqlite3.Connection, dataset: int, kept: Kept) -> None:
    """Roll up the oldest batches of a dataset to minutes, those to hours, and delete the oldest."""
    _coarsen(connection, dataset, 0, MINUTE, kept.batches)
    _coarsen(connection, dataset, MINUTE, HOUR, kept.minutes)
    if (excess := _count(connection, dataset, HOUR) - kept.hours) > 0:
        connection.execute(
            "DELETE FROM batch WHERE dataset = ?1 AND at IN (SELECT at FROM batch"
            " WHERE dataset = ?1 AND span = ?2 ORDER BY at LIMIT ?3)",
            (dataset, HOUR, excess),
        )


def forget_old(connection: sqlite3.Connection, limit: HistoryLimit, now: datetime) -> None:
    """Delete what is older than history reaches, and events and runs beyond their number."""
    before = to_us(now - limit.age)
    connection.execute("DELETE FROM batch WHERE at < ?", (before,))
    connection.execute(
        "DELETE FROM event WHERE at < ? OR id <= (SELECT max(id) FROM event) - ?",
        (before, limit.events),
    )
    connection.execute(
        "DELETE FROM run WHERE id NOT IN (SELECT id FROM run ORDER BY id DESC LIMIT ?)",
        (limit.runs,),
    )


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return how much of the file is in use."""
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _coarsen(
    connection: sqlite3.Connection, dataset: int, span_s: int, coarser_s: int, most: int
) -> None:
    """Roll up rows of one span that are too many, by stretches of the coarser one."""
    if (excess := _count(connection, dataset, span_s) - most) <= 0:
        return
    old = _rows(connection, dataset, span_s, "ASC", excess)
    # The stretch that the last rolling-up ended in may go on.
    records = [*_rows(connection, dataset, coarser_s, "DESC", 1), *old]
    ats = [(dataset, to_us(record.at)) for record in records]
    connection.executemany("DELETE FROM batch WHERE dataset = ? AND at = ?", ats)
    parts = groupby(records, lambda record: to_us(record.at) // (coarser_s * 1_000_000))
    rows = [(dataset, *batch_row(rolled_up(list(part)), coarser_s)) for _, part in parts]
    insert(connection, rows)


def insert(connection: sqlite3.Connection, rows: Sequence[tuple[object, ...]]) -> None:
    """Write rows of a dataset's id and `BATCH_COLUMNS`."""
    marks = ", ".join("?" * (BATCH_COLUMNS.count(",") + 2))
    connection.executemany(
        f"INSERT OR REPLACE INTO batch (dataset, {BATCH_COLUMNS}) VALUES ({marks})", rows
    )


def _rows(
    connection: sqlite3.Connection, dataset: int, span_s: int, order: str, most: int
) -> list[BatchRecord]:
    found = connection.execute(
        f"SELECT {BATCH_COLUMNS} FROM batch WHERE dataset = ? AND span = ?"
        f" ORDER BY at {order} LIMIT ?",
        (dataset, span_s, most),
    )
    return [batch_of("", row) for row in found]


def _count(connection: sqlite3.Connection, dataset: int, span_s: int) -> int:
    query = "SELECT count(*) FROM batch WHERE dataset = ? AND span = ?"
    return int(connection.execute(query, (dataset, span_s)).fetchone()[0])
