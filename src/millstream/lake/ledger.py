"""The ledger: what became of every row, as recorded in the commits themselves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.lake.home import QUARANTINE
from millstream.lake.log import facts_of
from millstream.lake.unreadable import UnreadableFiles
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
    unreadable: int = 0
    """Files of which no row is read: they are set aside."""
    blank: int = 0
    """Lines without a character to be seen: they are counted, and no rows."""
    bent: int = 0
    """Rows with values that fit their columns only because those are lenient."""

    @property
    def is_balanced(self) -> bool:
        """Whether every row read has a verdict, or is a blank line."""
        return self.input == sum(self.verdicts.values()) + self.blank


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
    """What became of the answers served to one store, as recorded in that store."""

    name: str
    store: str
    batches: int
    input: int
    """Rows that were sent to it."""
    written: int
    quarantined: int
    """Rows that it refused."""

    @property
    def is_balanced(self) -> bool:
        """Whether every row was written or quarantined."""
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
    """Read the facts of the last commit of every table."""
    sources, tables = [], []
    for name in home.tables:
        if name.endswith(QUARANTINE):
            continue
        facts = facts_of(home.table(name))
        counts, batches = facts.totals, facts.batch + 1
        if home.is_landing(name):
            verdicts = {verdict: counts.get(verdict, 0) for verdict in VERDICTS}
            aside = len(UnreadableFiles(home.connector(name)).read())
            entry = SourceEntry(
                name,
                batches,
                counts.get("input", 0),
                verdicts,
                aside,
                blank=counts.get("blank", 0),
                bent=counts.get("_bent", 0),
            )
            sources.append(entry)
            continue
        rules = {n.removeprefix(RULE): count for n, count in counts.items() if n.startswith(RULE)}
        table = TableEntry(
            name,
            batches,
            input=counts.get("input", 0),
            written=counts.get("written", 0),
            quarantined=counts.get("quarantined", 0),
            dropped=counts.get("dropped", 0),
            rules=rules,
        )
        tables.append(table)
    return Ledger(tuple(sources), tuple(tables), tuple(_serves(home)))


def record_served(home: Home, name: str, held: Mapping[str, Facts]) -> None:
    """Record the facts of each store of an answer, by its name, so that the home alone has them."""
    folder = home.served(name).parent
    folder.mkdir(exist_ok=True)
    counts = {s: {"batches": facts.batch + 1, **_sums(facts)} for s, facts in held.items()}
    temporary = folder / f".{name}.json"
    temporary.write_text(json.dumps(counts))
    temporary.replace(home.served(name))


def _serves(home: Home) -> Iterator[ServeEntry]:
    for file in sorted(home.served("").parent.glob("[!.]*.json")):
        for store, counts in json.loads(file.read_text()).items():
            yield ServeEntry(file.stem, store, **counts)


def _sums(facts: Facts) -> dict[str, int]:
    return {name: facts.totals.get(name, 0) for name in ("input", "written", "quarantined")}
