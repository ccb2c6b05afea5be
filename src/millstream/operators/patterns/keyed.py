"""The automaton as a function of a key: what is remembered, and what is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from millstream.operators.patterns.automaton import Row
from millstream.operators.patterns.packing import pack, unpack
from millstream.operators.state.parts import Turn

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
    """The steps that are told, with their numbers."""

    def turn(
        self, key: str, packed: bytes | None, rows: Sequence[tuple[Any, ...]], frontier_us: float
    ) -> Turn:
        """Take rows, and tell what they amount to up to the frontier."""
        memory = unpack(packed, self.automaton.program)
        memory.pending += [Row(*row) for row in rows]
        found = self.automaton.advance(memory, frontier_us)
        told = [(key, one.began, one.ended, self._rows(one)) for one in found]
        return Turn(pack(memory), self.automaton.due(memory), told)

    def _rows(self, found: Found) -> str:
        by_step = {
            name: ",".join(row.text for variable, row in found.rows if variable == number)
            for name, number in self.steps.items()
        }
        return "{" + ",".join(f'"{name}":[{rows}]' for name, rows in by_step.items()) + "}"
