"""What became of the rows of each batch, as its commit says."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.lake.ledger import RULE
from millstream.lake.log import commits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from millstream.lake.home import Home

_OUTCOMES = (
    *("ok", "late", "future", "malformed", "rejected", "blank"),
    *("written", "quarantined", "dropped"),
)


@dataclass(frozen=True, slots=True)
class BatchSumView:
    """The sum of one batch."""

    batch: int
    version: int
    at: datetime
    input: int
    outcomes: Mapping[str, int]
    """Rows by verdict of a source, or by what became of them of a table."""
    rules: Mapping[str, int]
    """Violations by rule."""

    @property
    def is_balanced(self) -> bool:
        """Whether something became of every row."""
        return self.input == sum(self.outcomes.values())


def batch_sums(home: Home, name: str, most: int) -> tuple[BatchSumView, ...]:
    """Read the sums of the last batches of a table or a landed source, the last one first.

    Raises:
        UNKNOWN_TABLE: There is no such table.
        HOME_DAMAGED: A commit cannot be read.
    """
    batches = (c for c in commits(home.existing(name)) if c.is_batch and c.facts)
    found = []
    for commit in itertools.islice(batches, most):
        assert commit.facts is not None
        counts = commit.facts.counts
        outcomes = {key: counts[key] for key in _OUTCOMES if counts.get(key)}
        rules = {key.removeprefix(RULE): n for key, n in counts.items() if key.startswith(RULE)}
        read = counts.get("input", 0)
        found.append(
            BatchSumView(
                commit.facts.batch,
                commit.version,
                commit.at,
                input=read,
                outcomes=outcomes,
                rules=rules,
            )
        )
    return tuple(found)
