"""What is recorded of a batch: the facts of its commit, completed by Spark's report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from millstream.lake.frontier import moment
from millstream.lake.log import commit_of, commits, facts_of
from millstream.observe.record import BatchRecord, EventRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.lake.home import Home
    from millstream.lake.log import Commit, Facts
    from millstream.observe import Progress

_LOOK_BACK = 20
"""Commits of other programs that may follow that of a batch."""
_COLUMNS_ADDED = "ADD COLUMN"
_MOST_COMMITS = 1000
"""How many batches that history lacks are read from a table's log."""


def output_of(kind: str) -> str:
    """Return the name of the count of rows that a dataset gives to its readers."""
    return "ok" if kind == "source" else "written"


def batch_record(name: str, kind: str, facts: Facts, at: datetime, run: int) -> BatchRecord:
    """Record a commit."""
    return BatchRecord(
        name,
        facts.batch,
        at,
        run=run,
        input=facts.counts.get("input", 0),
        output=facts.counts.get(output_of(kind), 0),
        counts={name: count for name, count in facts.counts.items() if count},
        complete_to=moment(facts.frontier),
        greatest_event_time=moment(facts.greatest_event_time),
        total=facts.totals.get(output_of(kind), 0),
    )


def reported_record(record: BatchRecord, progress: Progress) -> BatchRecord:
    """Add what Spark reported on the batch."""
    return replace(
        record,
        duration_ms=progress.duration_ms,
        phases=progress.phases,
        watermark=progress.watermark_at,
        state_rows=progress.state_rows,
        state_bytes=progress.state_bytes,
        behind_rows=progress.unread,
    )


def sent_record(name: str, progress: Progress, run: int) -> BatchRecord:
    """Record a batch that Spark wrote to a sink of its own, of which only its report is known."""
    took = timedelta(milliseconds=progress.duration_ms)
    at = (progress.began_at or datetime.now(UTC)) + took
    counts = {"input": progress.input_rows, "written": progress.output_rows}
    record = BatchRecord(name, progress.batch, at, run=run, counts=counts)
    record = replace(record, input=progress.input_rows, output=progress.output_rows)
    return reported_record(record, progress)


def live_record(name: str, counts: Mapping[str, int], reader: BatchRecord) -> BatchRecord:
    """Record what a batch read of a live source."""
    return replace(
        reader,
        dataset=name,
        input=counts.get("input", 0),
        output=counts.get("ok", 0),
        counts={verdict: rows for verdict, rows in counts.items() if rows},
        state_rows=None,
        state_bytes=None,
        complete_to=None,
        total=0,
        read={},
    )


def with_inputs(
    record: BatchRecord,
    inputs: Mapping[str, int],
    latest: Mapping[str, Facts],
    kinds: Mapping[str, str],
) -> BatchRecord:
    """Add what a recomputed answer was made from: all of each table, if it is as it was then."""
    current = {name: latest[name] for name in inputs if name in latest}
    read = {
        name: facts.totals.get(output_of(kinds.get(name, "table")), 0)
        for name, facts in current.items()
        if facts.changed == inputs[name]
    }
    return replace(record, read=read)


class ReadPositions:
    """How much of the tables of a home their readers have read."""

    def __init__(self, home: Home, kinds: Mapping[str, str]) -> None:
        self._home, self._kinds = home, kinds
        self._known: dict[tuple[str, int], int | None] = {}

    def with_read(
        self, record: BatchRecord, versions: Mapping[str, int], now: datetime
    ) -> BatchRecord:
        """Add what a batch has read of each table, and what it has not."""
        read = {
            name: rows
            for name in versions
            if (rows := self._rows(name, versions[name])) is not None
        }
        if not read:
            return record
        behind = [self._behind(name, versions[name], rows) for name, rows in read.items()]
        since = [at for _, at in behind if at is not None]
        behind_s = (now - min(since)).total_seconds() if since else 0.0
        return replace(
            record,
            read=read,
            behind_rows=sum(rows for rows, _ in behind) + (record.behind_rows or 0),
            behind_s=max(behind_s, 0.0),
        )

    def _rows(self, name: str, version: int) -> int | None:
        """Return how many rows a table had given at a version."""
        if version < 0:
            return 0
        key = (name, version)
        if key not in self._known:
            facts = self._facts_at(name, version)
            output = output_of(self._kinds.get(name, "table"))
            self._known = {k: rows for k, rows in self._known.items() if k[0] != name}
            self._known[key] = None if facts is None else facts.totals.get(output, 0)
        return self._known[key]

    def _facts_at(self, name: str, version: int) -> Facts | None:
        table = self._home.table(name)
        for earlier in range(version, max(version - _LOOK_BACK, -1), -1):
            commit = commit_of(table, earlier)
            if commit is None:
                return None
            if commit.facts is not None:
                return commit.facts
        return None

    def _behind(self, name: str, version: int, read: int) -> tuple[int, datetime | None]:
        """Return how many rows came after a version, and when the first of them came."""
        after = version + 1
        unread = commit_of(self._home.table(name), after)
        while unread is not None and not unread.is_batch:
            after += 1
            unread = commit_of(self._home.table(name), after)
        if unread is None:
            return 0, None
        output = output_of(self._kinds.get(name, "table"))
        rows = facts_of(self._home.table(name)).totals.get(output, 0) - read
        return max(rows, 0), unread.at if rows > 0 else None


def missing_records(
    home: Home, name: str, kind: str, last: BatchRecord | None
) -> list[BatchRecord | EventRecord]:
    """Read from a table's commits what history lacks: batches, and columns that were added."""
    output: list[BatchRecord | EventRecord] = []
    for commit in _commits_after(home, name, last):
        if commit.is_batch and commit.facts is not None:
            facts = commit.facts
            output.append(batch_record(name, kind, facts, commit.at, run=facts.epoch))
        elif commit.operation == _COLUMNS_ADDED:
            detail = f"columns were added in version {commit.version}"
            output.append(EventRecord(commit.at, "schema_changed", name, detail))
    return output[::-1]


def _commits_after(home: Home, name: str, last: BatchRecord | None) -> Iterator[Commit]:
    """Read the commits of a table after the last batch that history has, the latest first."""
    for commit in islice(commits(home.table(name)), _MOST_COMMITS):
        batch = commit.facts.batch if commit.is_batch and commit.facts else None
        if last is not None and (commit.at <= last.at or batch == last.batch):
            return
        yield commit
