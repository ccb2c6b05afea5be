"""The one judge of all crash tests: reads the tables of a home without Spark, and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.audit import Audit
from tests.chaos.findings import Findings
from tests.chaos.landed import Landed

from millstream.lake.home import Home
from millstream.trial.batch import compare, run_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.chaos.feed import Span

    from millstream.model.graph import Graph


class Oracle:
    """What is known of the tables of a home; each look reads only what is new."""

    def __init__(
        self, home: Home, expected: Callable[[], Mapping[str, Mapping[str, Span]]]
    ) -> None:
        self._home, self._expected = home, expected
        self._audits: dict[str, Audit] = {}
        self._landed: dict[str, Landed] = {}

    @property
    def rows(self) -> int:
        """How many rows have landed, as far as was read."""
        return sum(landed.rows for landed in self._landed.values())

    @property
    def batches(self) -> int:
        """How many batches all tables have, as far as was read."""
        return sum(len(audit.batched_at) for audit in self._audits.values())

    def last_batch(self, table: str) -> int:
        """Give the last batch of a table, as far as was read; -1 if it has none."""
        return self._audits[table].batch if table in self._audits else -1

    def first_batch_after(self, moment: float) -> float | None:
        """Say when the first batch after a moment was committed, in seconds since 1970."""
        times = (at for audit in self._audits.values() for at in audit.batched_at if at > moment)
        return min(times, default=None)

    def look(self) -> Findings:
        """Read what is new; judge everything but rows that may still be on their way."""
        # What is expected is asked for last: a row that lands meanwhile was put before.
        self._read()
        expected = self._expected()
        return self._audited() + _sum(
            landed.look(expected.get(name)) for name, landed in self._landed.items()
        )

    def settle(self) -> Findings:
        """Judge when nothing is on its way any more: all that was put must have landed."""
        self._read()
        expected = self._expected()
        for name in expected:
            self._landed.setdefault(name, Landed(name))
        return self._audited() + _sum(
            landed.settle(expected.get(name)) for name, landed in self._landed.items()
        )

    def _audited(self) -> Findings:
        return _sum(audit.findings for audit in self._audits.values())

    def _read(self) -> None:
        for name in self._home.tables:
            audit = self._audits.setdefault(name, Audit(self._home.table(name)))
            commits = audit.read()
            if self._home.is_landing(name):
                landed = self._landed.setdefault(name, Landed(name))
                brought = (commit for commit in commits if not commit.is_rewrite)
                files = (audit.table / file for commit in brought for file in commit.added)
                landed.add(file for file in files if file.exists())


def compare_with_batch(graph: Graph, spark: SparkSession, home: Home, place: Path) -> Findings:
    """Count the rows in which the tables of a drained home differ from the batch answer."""
    computed = Home.at(place)
    run_batch(graph, spark, home, computed)
    found = Findings()
    for table in compare(graph, spark, home, computed):
        if not table.is_equal:
            reported = f"{table.name!r}: {table.missing} rows missing, {table.extra} too many"
            found += Findings(wrong=table.missing + table.extra, remarks=(reported,))
    return found


def _sum(found: Iterable[Findings]) -> Findings:
    return sum(found, start=Findings())
