"""Which positions of which origin have landed, how often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.chaos.feed import EVERYTHING
from tests.chaos.findings import Findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.chaos.feed import Span

    Counts = np.ndarray[Any, np.dtype[np.int64]]

_COLUMNS = ["_origin", "_position"]


class Landed:
    """All rows of one source, as they were found in its landing table."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._counts: dict[str, Counts] = {}
        self._nowhere = 0

    @property
    def rows(self) -> int:
        """How many rows have landed."""
        return sum(int(counts.sum()) for counts in self._counts.values()) + self._nowhere

    def add(self, files: Iterable[Path]) -> None:
        """Read the rows of files that were committed."""
        for file in files:
            rows = pq.ParquetFile(file).read(_COLUMNS)
            for origin in pc.unique(rows["_origin"]).to_pylist():
                here = rows.filter(pc.equal(rows["_origin"], pa.scalar(origin, pa.string())))
                self._add(origin, here["_position"])

    def look(self, expected: Mapping[str, Span] | None) -> Findings:
        """Find rows that are there too often, and gaps before the last row of each origin."""
        found = Findings()
        if self._nowhere:
            found += self._told(f"{self._nowhere} rows have no origin", duplicated=self._nowhere)
        for origin, counts in self._counts.items():
            span = EVERYTHING if expected is None else expected.get(origin)
            found += self._hold(origin, counts, span)
        return found

    def settle(self, expected: Mapping[str, Span] | None) -> Findings:
        """Find the same, and whatever was put and has not landed at all."""
        found = self.look(expected)
        for origin, span in (expected or {}).items():
            if span.count is None:
                continue
            reached = len(self._counts.get(origin, ())) - span.first
            if (lacking := span.count - max(reached, 0)) > 0:
                found += self._told(f"the last {lacking} rows of {origin} are lost", lost=lacking)
        return found

    def _add(self, origin: str | None, positions: pa.ChunkedArray[Any]) -> None:
        if origin is None or positions.null_count:
            self._nowhere += len(positions)
            return
        found = np.bincount(positions.to_numpy())
        held = self._counts.get(origin, np.zeros(0, np.int64))
        counts = np.zeros(max(len(held), len(found)), np.int64)
        counts[: len(held)] += held
        counts[: len(found)] += found
        self._counts[origin] = counts

    def _hold(self, origin: str, counts: Counts, span: Span | None) -> Findings:
        wanted = np.zeros(len(counts), np.int64)
        if span is not None:
            last = len(counts) if span.count is None else span.first + span.count
            wanted[span.first : last] = 1
        surplus = counts - wanted
        found = Findings()
        if twice := int(surplus[surplus > 0].sum()):
            [first, *_] = np.flatnonzero(surplus > 0)
            found += self._told(
                f"{twice} rows too many of {origin}, from {first}", duplicated=twice
            )
        if missing := -int(surplus[surplus < 0].sum()):
            [first, *_] = np.flatnonzero(surplus < 0)
            found += self._told(f"{missing} rows of {origin} are lost, from {first}", lost=missing)
        return found

    def _told(self, remark: str, **counts: int) -> Findings:
        return Findings(remarks=(f"{self._source!r}: {remark}",), **counts)
