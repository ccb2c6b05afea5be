"""The ledger: what became of every row, as the commits themselves tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.lake.home import QUARANTINE
from millstream.lake.log import facts_of
from millstream.model.dataset import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.lake.home import Home

RULE = "rule: "
"""What the count of a rule's violations is filed under."""


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """What became of the rows of a landed source."""

    name: str
    batches: int
    input: int
    """Rows read, counted before they were parsed."""
    verdicts: Mapping[str, int]

    @property
    def is_balanced(self) -> bool:
        """Whether every row read has a verdict."""
        return self.input == sum(self.verdicts.values())


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What became of the answers of a table."""

    name: str
    batches: int
    input: int
    """Rows of all answers, counted before the rules were applied."""
    written: int
    quarantined: int
    dropped: int
    rules: Mapping[str, int]
    """Violations by rule."""

    @property
    def is_balanced(self) -> bool:
        """Whether every answer was written, quarantined or dropped by a rule."""
        return self.input == self.written + self.quarantined + self.dropped


@dataclass(frozen=True, slots=True)
class Ledger:
    """All entries of a home."""

    sources: tuple[SourceEntry, ...]
    tables: tuple[TableEntry, ...]

    @property
    def is_balanced(self) -> bool:
        """Whether nothing is unaccounted for."""
        return all(s.is_balanced for s in self.sources) and all(t.is_balanced for t in self.tables)


def read_ledger(home: Home) -> Ledger:
    """Read what the last commit of every table tells."""
    sources, tables = [], []
    for name in home.tables:
        if name.endswith(QUARANTINE):
            continue
        facts = facts_of(home.table(name))
        counts, batches = facts.totals, facts.batch + 1
        if home.is_landing(name):
            verdicts = {verdict: counts.get(verdict, 0) for verdict in VERDICTS}
            sources.append(SourceEntry(name, batches, counts.get("input", 0), verdicts))
            continue
        rules = {n.removeprefix(RULE): count for n, count in counts.items() if n.startswith(RULE)}
        entry = TableEntry(
            name,
            batches,
            input=counts.get("input", 0),
            written=counts.get("written", 0),
            quarantined=counts.get("quarantined", 0),
            dropped=counts.get("dropped", 0),
            rules=rules,
        )
        tables.append(entry)
    return Ledger(tuple(sources), tuple(tables))
