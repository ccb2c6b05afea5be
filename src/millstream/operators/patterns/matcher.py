"""The automaton as a function of a key: its memory is packed, its matches are answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from millstream.operators.patterns.automaton import Row
from millstream.operators.patterns.packing import pack, unpack
from millstream.operators.state.parts import TurnResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.operators.patterns.automaton import Automaton, Found

ANSWERS = StructType(
    [
        StructField("_key", StringType()),
        StructField("_began", LongType()),
        StructField("_ended", LongType()),
        StructField("_rows", StringType()),
    ]
)


@dataclass(frozen=True)
class Matcher:
    """Finds a pattern among the rows of a key, which are the first columns of `Row`."""

    automaton: Automaton
    steps: Mapping[str, int]
    """The steps that answers contain, with their numbers."""

    def turn(
        self, key: str, packed: bytes | None, rows: Sequence[tuple[Any, ...]], frontier_us: float
    ) -> TurnResult:
        """Process rows, and return the matches up to the frontier."""
        memory = unpack(packed, self.automaton.program)
        memory.pending += [Row(*row) for row in rows]
        found = self.automaton.advance(memory, frontier_us)
        answers = [(key, one.began, one.ended, self._rows(one)) for one in found]
        return TurnResult(pack(memory), self.automaton.due(memory), answers)

    def _rows(self, found: Found) -> str:
        by_step = {
            name: ",".join(row.text for variable, row in found.rows if variable == number)
            for name, number in self.steps.items()
        }
        return "{" + ",".join(f'"{name}":[{rows}]' for name, rows in by_step.items()) + "}"
