"""One table's log, read once from its first commit on and compared with what it says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from tests.chaos.commit import latest_version, read_commits
from tests.chaos.findings import Findings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.chaos.commit import Commit


class Audit:
    """What a table has been found to be, as far as its log was read."""

    def __init__(self, table: Path) -> None:
        self.table, self.findings = table, Findings()
        self.version, self.batch = -1, -1
        self.batched_at: list[float] = []
        """When each batch was committed, in seconds since 1970."""
        self._epoch = 0
        self._rows: dict[str, int] = {}
        self._totals: Counter[str] = Counter()

    def read(self) -> tuple[Commit, ...]:
        """Read what was committed since the last time, and hold it to its word."""
        latest = latest_version(self.table)
        fresh = tuple(read_commits(self.table, after=self.version))
        for commit in fresh:
            self._hold_files(commit)
            self._hold_epoch(commit)
            if commit.batch is not None:
                self._hold_batch(commit, commit.batch)
            self.version = commit.version
            self._hold_reader(commit.version)
        if self.version < latest:
            self._find(f"version {self.version + 1} is missing", torn=1)
            self.version = latest
        return fresh

    def _hold_files(self, commit: Commit) -> None:
        for name, reported in commit.added.items():
            found = count_rows(self.table / name)
            if found != reported:
                has = "cannot be read" if found is None else f"has {found}"
                self._find(f"{commit.version} says {reported} rows of {name}, which {has}", torn=1)
        before = sum(self._rows.values())
        self._rows |= commit.added
        for name in commit.removed:
            self._rows.pop(name, None)
        if metrics := commit.metrics:
            grown = metrics["num_target_rows_inserted"] - metrics["num_target_rows_deleted"]
            if sum(self._rows.values()) != before + grown:
                self._find(f"{commit.version} merged {grown:+} rows, its files differ", torn=1)

    def _hold_epoch(self, commit: Commit) -> None:
        if commit.epoch is None:
            return
        if commit.epoch < self._epoch:
            reported = f"{commit.version} is of epoch {commit.epoch}, after {self._epoch}"
            self._find(reported, regressed=1)
        self._epoch = max(self._epoch, commit.epoch)

    def _hold_batch(self, commit: Commit, batch: int) -> None:
        facts, self.batched_at = commit.facts, [*self.batched_at, commit.at]
        if batch <= self.batch:
            self._find(f"batch {batch} is there again", duplicated=max(facts.rows, 1))
        elif batch > self.batch + 1:
            self._find(f"batch {batch} follows {self.batch}", lost=batch - self.batch - 1)
        self.batch = batch
        reported, written = _told(facts.counts), _written(commit)
        if reported != written:
            self._find(f"batch {batch} says {reported} rows and has {written}", torn=1)
        self._totals.update(facts.counts)
        if +self._totals != +Counter(facts.totals):
            self._find(f"the totals after batch {batch} are not the sum of its batches", torn=1)
            self._totals = Counter(facts.totals)

    def _hold_reader(self, version: int) -> None:
        """Have a reader that knows nothing of us open the version."""
        try:
            files: Any = DeltaTable(str(self.table), version=version).get_add_actions()
            seen = sum(int(rows.as_py()) for rows in files.column("num_records"))
        except (DeltaError, OSError) as error:
            self._find(f"version {version} cannot be read: {error}", torn=1)
            return
        if seen != (held := sum(self._rows.values())):
            self._find(f"version {version} shows {seen} rows, its log says {held}", torn=1)

    def _find(self, remark: str, **counts: int) -> None:
        self.findings += Findings(remarks=(f"{self.table.name!r}: {remark}",), **counts)


def count_rows(file: Path) -> int | None:
    """Count the rows of a Parquet file by its footer; None if it cannot be read."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, ValueError):
        return None


def _told(counts: Mapping[str, int]) -> int:
    """Say how many rows a batch put into its table; a landing keeps whatever it reads."""
    return counts.get("written", counts.get("input", 0))


def _written(commit: Commit) -> int:
    if metrics := commit.metrics:
        return metrics["num_target_rows_inserted"] + metrics["num_target_rows_updated"]
    return sum(commit.added.values())
