"""Which notice was sent to which destination, durably: a SQLite file in the home.

Only the driver of the latest epoch enters notices and records deliveries; operators may retry or
silence a notice at any time.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import uuid
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.alert.destination import Known, names_of
from millstream.alert.identity import matches_text
from millstream.alert.outbox import Position
from millstream.errors import concealed
from millstream.lake.fence import Claim, Fence, on_change, on_take, refuse_overtaken
from millstream.model.notice import Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from millstream.alert.identity import Identity, OutboxRow
    from millstream.alert.outbox import NewRows

STATES = ("pending", "delivered", "dead", "silenced")
FILE = "deliveries.db"

_WAIT_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS fence (
    one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, owner TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS taken (
    alert TEXT PRIMARY KEY, table_id TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS notice (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, app TEXT NOT NULL, alert TEXT NOT NULL,
    key TEXT NOT NULL, event_time TEXT, row TEXT NOT NULL, content TEXT NOT NULL,
    repeats INTEGER NOT NULL DEFAULT 0, entered_at REAL NOT NULL, UNIQUE (alert, id));
CREATE INDEX IF NOT EXISTS notice_content ON notice (alert, content);
CREATE TABLE IF NOT EXISTS delivery (
    notice INTEGER NOT NULL REFERENCES notice (seq), destination TEXT NOT NULL,
    state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, first_at REAL, next_at REAL NOT NULL,
    done_at REAL, reason TEXT NOT NULL DEFAULT '', of_alert TEXT,
    PRIMARY KEY (notice, destination));
CREATE TABLE IF NOT EXISTS destination (
    alert TEXT NOT NULL, name TEXT NOT NULL, mark TEXT NOT NULL, is_gone INTEGER NOT NULL,
    PRIMARY KEY (alert, name));
CREATE TABLE IF NOT EXISTS silence (alert TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL);
"""
_OF_ALERT = "ALTER TABLE delivery ADD COLUMN of_alert TEXT"
_LINES = (
    "CREATE INDEX IF NOT EXISTS delivery_line "
    "ON delivery (of_alert, destination, state, next_at, notice)",
    "UPDATE delivery SET of_alert = (SELECT alert FROM notice WHERE seq = notice) "
    "WHERE of_alert IS NULL",
    "DROP INDEX IF EXISTS delivery_due",
)
"""Find the first notice of a line quickly, however many wait there or in others."""
_FENCE = "SELECT epoch, owner FROM fence"
_NOTICE = "n.id, n.app, n.alert, n.key, n.event_time, n.row"


@dataclass(frozen=True, slots=True)
class Silence:
    """Alerts that are not sent, and until when."""

    alert: str
    """Which; all if empty."""
    key: Mapping[str, str]
    """The columns of the key that it names, with their values."""
    until: float
    """In seconds since 1970."""

    def covers(self, notice: Notice) -> bool:
        """Return whether it applies to a notice."""
        if self.alert not in ("", notice.alert):
            return False
        about = json.loads(notice.key) if self.key else {}
        named = self.key.items()
        return all(name in about and matches_text(about[name], text) for name, text in named)


@dataclass(frozen=True, slots=True)
class Due:
    """A notice that is due to be sent to a destination."""

    seq: int
    notice: Notice
    attempts: int
    """How often it was tried before."""
    first_at: float | None
    """When it was tried first."""
    is_silenced: bool


@dataclass(frozen=True, slots=True)
class Delivery:
    """The state of a notice at one destination."""

    notice: Notice
    destination: str
    state: str
    attempts: int
    next_at: float
    done_at: float | None
    reason: str
    repeats: int
    """How many more rows the cooldown has suppressed."""


class Deliveries:
    """The file, open; a connection serves all threads of a process."""

    def __init__(self, folder: Path, epoch: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE
        self._claim = None if epoch is None else Claim("", epoch, uuid.uuid4().hex)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(
            self._path, _WAIT_S, isolation_level=None, check_same_thread=False
        )
        self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + _SCHEMA)
        if self._claim or not self._has_lines():
            self._index_lines()
        if self._claim:
            self._take(self._claim)

    @staticmethod
    def existing(folder: Path) -> Deliveries | None:
        """Open the file to look at it; None if there is none yet."""
        return Deliveries(folder) if (folder / FILE).exists() else None

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._db.close()

    def check_fence(self) -> None:
        """Check that no later driver has taken over.

        Raises:
            OvertakenError: One was.
        """
        self._check_fence(self._all(_FENCE))

    def position(self, alert: str) -> Position | None:
        """Return how far the outbox of an alert was read."""
        found = self._all("SELECT table_id, version FROM taken WHERE alert = ?", alert)
        return Position(*found[0]) if found else None

    def enter(
        self, identity: Identity, new_rows: NewRows, destinations: Sequence[str], now: float
    ) -> int:
        """Record rows for delivery, and how far the outbox was read; return how many are new.

        Raises:
            OvertakenError: A later driver was here.
        """
        alert, entries = identity.alert, identity.entries(new_rows.rows)
        with self._fenced():
            numbers = Counter[str]() if new_rows.is_whole else self._numbers(alert, entries)
            new = 0
            for entry in entries:
                numbers[entry.content] += 1
                id_ = identity.id_of(entry, numbers[entry.content])
                is_new = self._enter(identity, entry, id_, destinations, now)
                new += is_new
                if not is_new and not new_rows.is_whole:
                    again = "UPDATE notice SET repeats = repeats + 1 WHERE alert = ? AND id = ?"
                    self._db.execute(again, (alert, id_))
            self._db.execute(
                "INSERT OR REPLACE INTO taken VALUES (?, ?, ?)",
                (alert, new_rows.position.table, new_rows.position.version),
            )
        return new

    def due(self, alert: str, destination: str, now: float) -> Due | None:
        """Return the notice that has waited longest for a destination, if any is due now."""
        query = (
            f"SELECT n.seq, d.attempts, d.first_at, {_NOTICE} "
            "FROM delivery d JOIN notice n ON n.seq = d.notice WHERE d.of_alert = ?2 "
            "AND d.destination = ?3 AND d.state = 'pending' AND d.next_at <= ?1 "
            "ORDER BY d.next_at, d.notice LIMIT 1"
        )
        found = self._all(query, now, alert, destination)
        if not found:
            return None
        seq, attempts, first_at, *facts = found[0]
        notice = Notice(*facts)
        is_silenced = any(silence.covers(notice) for silence in self.silences(now))
        return Due(seq, notice, attempts, first_at, is_silenced)

    def next_at(self, alert: str, destination: str) -> float | None:
        """Return when the next notice for a destination is due; None if nothing waits for it."""
        query = (
            "SELECT min(next_at) FROM delivery "
            "WHERE of_alert = ? AND destination = ? AND state = 'pending'"
        )
        [(first,)] = self._all(query, alert, destination)
        return None if first is None else float(first)

    def note(self, due: Due, destination: str, state: str, **facts: Any) -> None:
        """Record the result of a delivery.

        Raises:
            OvertakenError: A later driver was here.
        """
        facts = {"state": state, **facts}
        if "reason" in facts:
            facts["reason"] = concealed(facts["reason"])
        changes = ", ".join(f"{name} = ?" for name in facts)
        with self._fenced():
            self._db.execute(
                f"UPDATE delivery SET {changes} WHERE notice = ? AND destination = ?",
                (*facts.values(), due.seq, destination),
            )

    def name_destinations(self, alert: str, marks: Sequence[str]) -> list[str]:
        """Name the destinations of an alert; mark what waits for others as dead.

        Raises:
            OvertakenError: A later driver was here.
        """
        with self._fenced():
            query = "SELECT name, mark, is_gone FROM destination WHERE alert = ?"
            known = [Known(*found) for found in self._db.execute(query, (alert,))]
            names = names_of(marks, known)
            self._db.execute("UPDATE destination SET is_gone = 1 WHERE alert = ?", (alert,))
            self._db.executemany(
                "INSERT OR REPLACE INTO destination VALUES (?, ?, ?, 0)",
                [(alert, name, mark) for name, mark in zip(names, marks, strict=True)],
            )
            why = "the alert is no longer sent there"
            self._mark_dead(why, "destination", names, alert)
        return names

    def drop_all_but(self, alerts: Sequence[str]) -> None:
        """Mark pending notices of alerts that are no longer declared as dead.

        Raises:
            OvertakenError: A later driver was here.
        """
        with self._fenced():
            self._mark_dead("the alert is no longer declared", "of_alert", alerts)

    def _mark_dead(
        self, why: str, what: str, kept: Sequence[str], alert: str | None = None
    ) -> None:
        """Mark what is pending as dead, unless its alert or destination is among `kept`."""
        self._db.execute(
            "UPDATE delivery SET state = 'dead', reason = ?1 WHERE state = 'pending' "
            "AND (?2 IS NULL OR of_alert = ?2) "
            f"AND {what} NOT IN (SELECT value FROM json_each(?3))",
            (why, alert, json.dumps(kept)),
        )

    def listed(
        self,
        *,
        alert: str | None = None,
        state: str | None = None,
        id_: str = "",
        limit: int | None = None,
    ) -> Iterator[Delivery]:
        """List the deliveries of notices, the newest first."""
        query = (
            f"SELECT {_NOTICE}, d.destination, d.state, d.attempts, d.next_at, d.done_at, "
            # In the order of the list, so that its beginning is found without the rest.
            "d.reason, n.repeats FROM notice n CROSS JOIN delivery d ON d.notice = n.seq "
            "WHERE (?1 IS NULL OR n.alert = ?1) AND (?2 IS NULL OR d.state = ?2) "
            "AND substr(n.id, 1, length(?3)) = ?3 ORDER BY n.seq DESC, d.destination LIMIT ?4"
        )
        for row in self._all(query, alert, state, id_, -1 if limit is None else limit):
            yield Delivery(Notice(*row[:6]), *row[6:])

    def counts(self, alert: str | None = None) -> dict[str, int]:
        """Count deliveries by state."""
        query = (
            "SELECT d.state, count(*) FROM delivery d JOIN notice n ON n.seq = d.notice "
            "WHERE ?1 IS NULL OR n.alert = ?1 GROUP BY d.state"
        )
        found = dict(self._all(query, alert))
        return {state: int(found.get(state, 0)) for state in STATES}

    def erase(self, is_own: Callable[[Mapping[str, Any]], bool]) -> int:
        """Erase the notices of some rows, with their deliveries, so that no byte of them is left.

        Returns:
            How many there were.
        """
        found = self._all("SELECT seq, row FROM notice")
        own = [(seq,) for seq, row in found if is_own(json.loads(row))]
        with self._lock:
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.executemany("DELETE FROM delivery WHERE notice = ?", own)
            self._db.executemany("DELETE FROM notice WHERE seq = ?", own)
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(own)

    def retry(self, *, alert: str | None = None, id_: str = "") -> int:
        """Retry what is dead or silenced, and what is pending at once."""
        with self._transaction():
            return self._db.execute(
                "UPDATE delivery SET state = 'pending', next_at = 0, first_at = NULL "
                "WHERE state <> 'delivered' AND notice IN (SELECT seq FROM notice "
                "WHERE (?1 IS NULL OR alert = ?1) AND substr(id, 1, length(?2)) = ?2)",
                (alert, id_),
            ).rowcount

    def silence(self, silence: Silence) -> None:
        """Silence notices for a while; a silence that has already ended cancels the same one."""
        alert, key = silence.alert, json.dumps(silence.key, sort_keys=True)
        with self._transaction():
            self._db.execute("DELETE FROM silence WHERE alert = ? AND key = ?", (alert, key))
            self._db.execute("INSERT INTO silence VALUES (?, ?, ?)", (alert, key, silence.until))

    def silences(self, now: float) -> list[Silence]:
        """Return the silences in force."""
        found = self._all("SELECT * FROM silence WHERE until > ? ORDER BY alert, key", now)
        return [Silence(alert, json.loads(key), until) for alert, key, until in found]

    def _numbers(self, alert: str, entries: Sequence[OutboxRow]) -> Counter[str]:
        """Count the notices there are already, by content."""
        query = "SELECT count(*) FROM notice WHERE alert = ? AND content = ?"
        contents = {entry.content for entry in entries}
        counts = {c: self._db.execute(query, (alert, c)).fetchone()[0] for c in contents}
        return Counter({content: count for content, count in counts.items() if count})

    def _enter(
        self,
        identity: Identity,
        entry: OutboxRow,
        id_: str,
        destinations: Sequence[str],
        now: float,
    ) -> bool:
        facts = (id_, identity.app, identity.alert, entry.key, entry.event_time, entry.row)
        made = self._db.execute(
            "INSERT OR IGNORE INTO notice (id, app, alert, key, event_time, row, content, "
            "entered_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*facts, entry.content, now),
        )
        if not made.rowcount:
            return False
        self._db.executemany(
            "INSERT INTO delivery (notice, of_alert, destination, state, next_at) "
            "VALUES (?, ?, ?, 'pending', ?)",
            [(made.lastrowid, identity.alert, name, now) for name in destinations],
        )
        return True

    def _has_lines(self) -> bool:
        return bool(self._all("SELECT 1 FROM sqlite_master WHERE name = 'delivery_line'"))

    def _index_lines(self) -> None:
        """Index deliveries by alert and destination, also those of an earlier release."""
        with self._transaction():
            columns = self._db.execute("SELECT name FROM pragma_table_info('delivery')").fetchall()
            if ("of_alert",) not in columns:
                self._db.execute(_OF_ALERT)
            for statement in _LINES:
                self._db.execute(statement)

    def _take(self, claim: Claim) -> None:
        with self._transaction():
            found = self._db.execute(_FENCE).fetchall()
            held = Fence("", *found[0]) if found else None
            refuse_overtaken(on_take(held, claim), held, claim, str(self._path))
            self._db.execute(
                "INSERT OR REPLACE INTO fence VALUES (1, ?, ?)", (claim.epoch, claim.owner)
            )

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        with self._transaction():
            self._check_fence(self._db.execute(_FENCE).fetchall())
            yield

    def _check_fence(self, found: Sequence[tuple[int, str]]) -> None:
        assert self._claim, "opened to look at it"
        held = Fence("", *(found[0] if found else (0, "")))
        refuse_overtaken(on_change(held, self._claim), held, self._claim, str(self._path))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _all(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            return self._db.execute(query, values).fetchall()
