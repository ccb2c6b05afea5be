"""Which line of which file a record is, when records come without a position of their own."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NO_RECORD = "no_record"
"""The reason of a line that is no record of its own, and no fault: a header, or a later line of a
record."""
BLANK = "blank"
"""The reason of a line without a character to be seen: it is counted, and not landed."""

_BLOCK = re.compile(r"@(\d+)$")


class Run(NamedTuple):
    """Neighbouring rows of one origin."""

    origin: str | None
    start: int
    stop: int
    line: int
    """The line number of the first of them."""

    @property
    def opens_file(self) -> bool:
        """Whether the first of them is the first line of a file, not of a later block of it."""
        block = _BLOCK.search(self.origin or "")
        return self.line == 1 and (block is None or int(block[1]) == 0)


class LineCount:
    """Counts lines by origin, from one batch of a partition to the next."""

    def __init__(self) -> None:
        self._origin: str | None = None
        self._lines = 0

    def runs(self, origins: pa.Array[Any]) -> list[Run]:
        """Cut a batch into runs of equal origin and count their lines."""
        encoded: Any = pc.call_function("run_end_encode", [origins])
        runs, start = [], 0
        for origin, stop in zip(
            encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True
        ):
            before = self._lines if origin == self._origin else 0
            runs.append(Run(origin, start, stop, before + 1))
            self._origin, self._lines = origin, before + stop - start
            start = stop
        return runs


def line_numbers(runs: list[Run]) -> pa.Array[Any]:
    """Number the rows of a batch."""
    parts = [np.arange(run.line, run.line + run.stop - run.start) for run in runs]
    return pa.array(np.concatenate([np.empty(0, np.int64), *parts]), pa.int64())
