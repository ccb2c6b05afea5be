"""History as it is written: by the driver, and by a console that records what was done there."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from millstream.errors import fault
from millstream.observe.event import Event
from millstream.observe.history_file import (
    DamagedHistoryError,
    is_damage,
    open_for_writing,
    set_aside,
)
from millstream.observe.history_limit import HistoryLimit, forget_old, insert, roll_up, used_bytes
from millstream.observe.history_row import (
    EVENT_COLUMNS,
    batch_row,
    event_row,
    last_of,
    last_text,
    run_row,
    totals_of,
    totals_text,
)
from millstream.observe.record import BatchRecord, EventRecord, RunRecord, Totals, added

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    Record = BatchRecord | EventRecord | RunRecord

_MICROSECOND = timedelta(microseconds=1)
_SLACK = 0.1
"""How many batches more than its share a dataset may have before they are rolled up."""
_FORGET_EVERY = 1000
_SHRINK, _LEAST = 0.7, 0.01


class HistoryWriter:
    """Writes history. Whatever happens to the file, nothing is raised: it is reported, once."""

    def __init__(
        self,
        path: Path,
        report: Callable[[Event], None] = lambda _: None,
        limit: HistoryLimit | None = None,
    ) -> None:
        self._path, self._report, self._limit = path, report, limit or HistoryLimit()
        self._open: _OpenHistory | None = None
        self._is_failing = False

    def write(self, records: Sequence[Record]) -> bool:
        """Write records in one transaction; return whether they are written.

        A batch that is written already is left out. A run replaces the one of its number. A
        damaged file is set aside, and another one begun.
        """
        try:
            self._write(records)
        except (sqlite3.Error, OSError) as error:
            self.close()
            if not self._is_failing:
                self._is_failing = True
                why = str(error)
                stopped = fault("HISTORY_UNWRITABLE", file=str(self._path), why=why)
                self._report(Event("history_stopped", "", error=stopped))
            return False
        if self._is_failing:
            self._is_failing = False
            self._report(Event("history_resumed", ""))
        return True

    def last(self, dataset: str) -> BatchRecord | None:
        """Return the last batch that is written of a dataset; None if it cannot be known."""
        with suppress(sqlite3.Error, OSError):
            return self._opened().last(dataset)
        return None

    def close(self) -> None:
        """Close the file; the next record opens it again."""
        if self._open is not None:
            self._open.connection.close()
            self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, records: Sequence[Record]) -> None:
        try:
            self._opened().write(records)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._set_aside(str(error))
            self._opened().write(records)

    def _opened(self) -> _OpenHistory:
        if self._open is None:
            try:
                self._open = _OpenHistory(open_for_writing(self._path), self._limit)
            except DamagedHistoryError as error:
                self._set_aside(str(error))
                self._open = _OpenHistory(open_for_writing(self._path), self._limit)
        return self._open

    def _set_aside(self, why: str) -> None:
        self.close()
        aside = set_aside(self._path)
        self._report(Event("history_set_aside", "", f"{why}; it is now {aside.name}"))


class _OpenHistory:
    """An open history, with what is known of its datasets."""

    def __init__(self, connection: sqlite3.Connection, limit: HistoryLimit) -> None:
        self.connection, self._limit, self._scale = connection, limit, 1.0
        self._ids: dict[str, int] = {}
        self._lasts: dict[str, BatchRecord | None] = {}
        self._totals: dict[str, Totals] = {}
        self._kept: dict[str, int] = {}
        """Batches that are not rolled up."""
        self._until_forgetting = 0
        try:
            self._read()
        except sqlite3.Error:
            connection.close()
            raise

    def _read(self) -> None:
        for id_, name, last, totals in self.connection.execute(
            "SELECT id, name, last, totals FROM dataset"
        ):
            self._ids[name] = id_
            self._lasts[name], self._totals[name] = last_of(name, last), totals_of(totals)
        counts = dict(
            self.connection.execute(
                "SELECT dataset, count(*) FROM batch WHERE span = 0 GROUP BY dataset"
            )
        )
        self._kept = {name: counts.get(id_, 0) for name, id_ in self._ids.items()}

    def last(self, dataset: str) -> BatchRecord | None:
        return self._lasts.get(dataset)

    def write(self, records: Sequence[Record]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        changed: set[str] = set()
        for record in records:
            if isinstance(record, BatchRecord):
                changed |= self._write_batch(record)
            elif isinstance(record, EventRecord):
                changed |= self._write_event(record)
            else:
                self.connection.execute(
                    "INSERT OR REPLACE INTO run (id, started_at, ended_at, rest)"
                    " VALUES (?, ?, ?, ?)",
                    run_row(record),
                )
        self._write_datasets(changed)
        self.connection.execute("UPDATE writing SET number = number + 1")
        self._keep_limits(changed, len(records))
        self.connection.execute("COMMIT")

    def _write_batch(self, record: BatchRecord) -> set[str]:
        name, last = record.dataset, self._lasts.get(record.dataset)
        if last is not None:
            if record.batch == last.batch or (record.batch < last.batch and record.at <= last.at):
                return set()
            # Clocks go back now and then; batches do not.
            record = replace(record, at=max(record.at, last.at + _MICROSECOND))
        insert(self.connection, [(self._id_of(name), *batch_row(record, 0))])
        self._lasts[name] = record
        self._totals[name] = self._totals[name].plus(record)
        self._kept[name] += 1
        return {name}

    def _write_event(self, record: EventRecord) -> set[str]:
        self.connection.execute(
            f"INSERT INTO event ({EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            event_row(record),
        )
        if record.kind != "restarting" or not record.dataset:
            return set()
        self._id_of(record.dataset)
        totals = self._totals[record.dataset]
        restarts = added(totals.restarts, {record.code or "UNEXPECTED": 1})
        self._totals[record.dataset] = replace(totals, restarts=restarts)
        return {record.dataset}

    def _id_of(self, name: str) -> int:
        if name not in self._ids:
            empty = totals_text(Totals())
            [[self._ids[name]]] = self.connection.execute(
                "INSERT INTO dataset (name, last, totals) VALUES (?, 'null', ?)"
                " ON CONFLICT (name) DO UPDATE SET name = name RETURNING id",
                (name, empty),
            ).fetchall()
            self._lasts[name], self._totals[name], self._kept[name] = None, Totals(), 0
        return self._ids[name]

    def _write_datasets(self, changed: Iterable[str]) -> None:
        lasts, totals = self._lasts, self._totals
        self.connection.executemany(
            "UPDATE dataset SET last = ?, totals = ? WHERE id = ?",
            [
                (last_text(last) if (last := lasts[name]) else "null", totals_text(totals[name]), n)
                for name, n in self._ids.items()
                if name in changed
            ],
        )

    def _keep_limits(self, changed: Iterable[str], written: int) -> None:
        kept = self._limit.of_each(len(self._ids), self._scale)
        for name in changed:
            if self._kept[name] > kept.batches * (1 + _SLACK):
                roll_up(self.connection, self._ids[name], kept)
                self._kept[name] = kept.batches
        self._until_forgetting -= written
        if self._until_forgetting <= 0:
            self._until_forgetting = _FORGET_EVERY
            forget_old(self.connection, self._limit, datetime.now(UTC))
            while used_bytes(self.connection) > self._limit.used_bytes and self._scale > _LEAST:
                self._shrink()

    def _shrink(self) -> None:
        """Keep less of every dataset, from now on."""
        self._scale *= _SHRINK
        kept = self._limit.of_each(len(self._ids), self._scale)
        for name, id_ in self._ids.items():
            roll_up(self.connection, id_, kept)
            self._kept[name] = min(self._kept[name], kept.batches)
