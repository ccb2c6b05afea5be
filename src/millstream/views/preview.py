"""A look at a dataset that did not run, for a notebook or a terminal, and what it is made of.

The tables are Spark's own, as `DataFrame.show` draws them.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from millstream.trial.preview import Broken, SampledAnswer
    from millstream.trial.sample import Sample

_LONGEST_CELL = 60
_FATES = {
    "quarantine": "quarantined",
    "drop": "dropped",
    "fail": "the table would stop",
    "warn": "kept all the same",
}


@dataclass(frozen=True, slots=True, repr=False)
class Preview:
    """The first rows of a dataset over a sample of its sources."""

    name: str
    frame: DataFrame
    """All rows over the sample, as a plain DataFrame to continue with."""
    samples: tuple[Sample, ...]
    broken: tuple[Broken, ...]
    """Rules that rows of a table break."""
    _text: str = field(compare=False)
    _html: str = field(compare=False)

    @staticmethod
    def of(name: str, trial: SampledAnswer, *, rows: int) -> Preview:
        """Draw a dataset that was tried out."""
        shown: Any = trial.shown._jdf
        vertical = False
        text = shown.showString(rows, _LONGEST_CELL, vertical)
        table = shown.htmlString(rows, _LONGEST_CELL)
        return Preview(name, trial.frame, trial.samples, trial.broken, text, table)

    def __repr__(self) -> str:
        return "\n".join([self._text.rstrip(), *self._notes()])

    def _repr_html_(self) -> str:
        """Draw the table in a notebook, and say below it what it is made of."""
        return f"{self._html}<pre>{html.escape(chr(10).join(self._notes()))}</pre>"

    def _notes(self) -> Iterator[str]:
        for broken in self.broken:
            violate = "row violates" if broken.rows == 1 else "rows violate"
            fate = _FATES[broken.on_violation]
            yield f"{broken.table}: {broken.rows} {violate} {broken.rule!r}: {fate}"
        for sample in self.samples:
            yield from _told(sample)


def _told(sample: Sample) -> Iterator[str]:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sample.verdicts.items())
    plural = "" if sample.taken == 1 else "s"
    if sample.is_landed:
        yield f"{sample.source}: {sample.taken} landed row{plural}, of {counts}"
    else:
        records = f"{sample.taken} record{plural} sampled from {sample.connector}"
        yield f"{sample.source}: {records}: {counts}".removesuffix(": ")
    for row in sample.aside:
        raw = f": {_shortened(row.raw)}" if row.raw is not None else ""
        yield f"  {row.verdict} at {row.place}: {row.reason}{raw}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}…"
