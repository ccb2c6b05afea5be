"""The ledger: what became of every row, as the commits themselves tell it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.lake.home import QUARANTINE
from millstream.lake.log import facts_of
from millstream.model.dataset import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.lake.home import Home
    from millstream.lake.log import Facts

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
class ServeEntry:
    """What became of the answers served to one store, as that store tells it."""

    name: str
    store: str
    batches: int
    input: int
    """Rows that it was to have."""
    written: int
    quarantined: int
    """Rows that it refused."""

    @property
    def is_balanced(self) -> bool:
        """Whether every row was written or put aside."""
        return self.input == self.written + self.quarantined


@dataclass(frozen=True, slots=True)
class Ledger:
    """All entries of a home."""

    sources: tuple[SourceEntry, ...]
    tables: tuple[TableEntry, ...]
    serves: tuple[ServeEntry, ...] = ()

    @property
    def is_balanced(self) -> bool:
        """Whether nothing is unaccounted for."""
        return (
            all(source.is_balanced for source in self.sources)
            and all(table.is_balanced for table in self.tables)
            and all(serve.is_balanced for serve in self.serves)
        )


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
    return Ledger(tuple(sources), tuple(tables), tuple(_serves(home)))


def note_served(home: Home, name: str, held: Mapping[str, Facts]) -> None:
    """Note what the stores of an answer told, by their names, for who reads the home alone."""
    folder = home.served(name).parent
    folder.mkdir(exist_ok=True)
    told = {s: {"batches": facts.batch + 1, **_sums(facts)} for s, facts in held.items()}
    temporary = folder / f".{name}.json"
    temporary.write_text(json.dumps(told))
    temporary.replace(home.served(name))


def _serves(home: Home) -> Iterator[ServeEntry]:
    for file in sorted(home.served("").parent.glob("[!.]*.json")):
        for store, told in json.loads(file.read_text()).items():
            yield ServeEntry(file.stem, store, **told)


def _sums(facts: Facts) -> dict[str, int]:
    return {name: facts.totals.get(name, 0) for name in ("input", "written", "quarantined")}
