"""Patterns in Spark: rows are filtered, run through the automaton by key, and matches decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from millstream.operators.build_context import Hold, notes
from millstream.operators.columns import quoted
from millstream.operators.patterns.automaton import Automaton
from millstream.operators.patterns.matcher import ANSWERS, Matcher
from millstream.operators.patterns.program import compiled
from millstream.operators.patterns.rows import SearchedRows
from millstream.operators.patterns.selection import STEPS, MatchSelection
from millstream.operators.patterns.state_facts import state_facts
from millstream.operators.state.buckets import run_keyed
from millstream.operators.state.row_text import JSON

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location
    from millstream.operators.patterns.pattern import Pattern
    from millstream.operators.patterns.program import AfterMatch


def search(
    rows: DataFrame, pattern: Pattern, skip: AfterMatch | None, select: str | None, at: Location
) -> DataFrame:
    """Return matches; without `skip`, beginnings that are not followed.

    Raises:
        DeclarationError: Pattern, rows and selection do not fit together.
    """
    searched = SearchedRows.at(rows, pattern)
    program = compiled(pattern, searched.kinds(), searched.digits())
    steps = pattern.names if skip else tuple(_beginning(pattern))
    selection = MatchSelection(select, at, steps) if select is not None else None
    carried = selection.columns(rows.columns) if selection else tuple(rows.columns)
    times = ["began", "ended" if skip else "until"]
    searched.check(carried, times, at)
    numbers = {v.name: number for number, (v, _) in enumerate(pattern.conditions())}
    matcher = Matcher(Automaton(program, skip), {n: numbers[n] for n in steps})
    if rows.isStreaming:
        notes().states.append(state_facts(searched, skip, carried, at))
    answers = run_keyed(searched.prepared(carried), matcher, ANSWERS)
    notes().holds.append(Hold(pattern.within))
    key_type = StructType([rows.schema[name] for name in pattern.key])
    row_type = StructType([rows.schema[name] for name in carried])
    by_step = StructType()
    for name in steps:
        by_step.add(name, ArrayType(row_type))
    decoded = answers.select(
        F.from_json("_key", key_type, JSON).alias("_key"),
        F.timestamp_micros("_began").alias(times[0]),
        F.timestamp_micros("_ended").alias(times[1]),
        F.from_json("_rows", by_step, JSON).alias(STEPS),
    ).select("_key.*", *times, STEPS)
    if selection:
        return selection.of(decoded, rows)
    return decoded.select(*map(quoted, pattern.key), *times, *_whole(pattern, steps))


def _whole(pattern: Pattern, steps: tuple[str, ...]) -> list[Column]:
    """Each step with its rows: one, or an array if it may take several; null if it has none."""
    several = {v.name for step in pattern.steps if step.most != 1 for v in step.variables}
    return [
        F.expr(f"IF(size({STEPS}.`{name}`) > 0, {STEPS}.`{name}`, NULL)").alias(name)
        if name in several
        else F.expr(f"try_element_at({STEPS}.`{name}`, -1)").alias(name)
        for name in steps
    ]


def _beginning(pattern: Pattern) -> list[str]:
    """Name the steps a match may begin with."""
    found: list[str] = []
    for step in pattern.steps:
        found += [v.name for v in step.variables]
        if not step.is_optional:
            break
    return found
