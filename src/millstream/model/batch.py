"""How much a batch of a query reads at most."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from datetime import timedelta

BOUNDS = 'a length of time such as "10 seconds", a number of rows such as "50000 rows", or "all"'
"""What a bound can be."""
_ROWS = re.compile(r"\s*(\d[\d_]*)\s*rows?\s*")


@dataclass(frozen=True, slots=True)
class BatchBound:
    """What a batch should take in time, or the rows that it reads at most; neither: all there are.

    A time is a target: the size of the next batch follows from what the last ones took.
    """

    target: timedelta | None = None
    rows: int | None = None

    @staticmethod
    def parse(text: str) -> BatchBound:
        """Read a bound, such as "10 seconds", "50000 rows" or "all".

        Raises:
            ValueError: The text is none of these, or nothing fits into it.

        >>> BatchBound.parse("50_000 rows").rows
        50000
        >>> BatchBound.parse("10 seconds").target
        datetime.timedelta(seconds=10)
        """
        if text.strip() == "all":
            return BatchBound()
        if found := _ROWS.fullmatch(text):
            bound = BatchBound(rows=int(found[1]))
        else:
            bound = BatchBound(target=parse_duration(text))
        if not (bound.rows or bound.target):
            raise ValueError(text)
        return bound


DEFAULT_BOUND = "10 seconds"
