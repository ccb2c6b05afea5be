"""What users call to look for a pattern: the same in a batch and in a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.operators.patterns.program import check_absence, check_order, skip_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.operators.patterns.pattern import Pattern


def match(
    rows: DataFrame,
    pattern: Pattern,
    *,
    after_match: str = "skip_past_last",
    select: str | None = None,
) -> DataFrame:
    """Find a pattern: one row for each match, in a stream once no row to come can change it.

    A match is complete with the first row that completes it; greedy steps at the end then take what
    they still can. Of matches that exclude each other, the first that is complete is chosen. Rows
    at the same instant are ordered by a hash of all their columns: by what they are, never by
    arrival or by what is selected.

    Args:
        rows: Where to look; a stream must have a watermark.
        pattern: What to look for.
        after_match: Where matching continues: `skip_past_last` (after the last row: matches do not
            overlap), `skip_to_next` (every row may begin a match), `skip_to_first(step)`,
            `skip_to_last(step)`.
        select: Columns of a match: those of the key, `began`, `ended`, and of steps as
            `step.column` (the last row) or `sum(step.column)`; by default the key, both times,
            and each step as a struct, or an array of structs if it takes several rows.

    Raises:
        DeclarationError: Pattern, rows and selection do not fit together.
    """
    at = location_of_caller()
    check_order(pattern)
    from millstream.operators.patterns.search import search

    return search(rows, pattern, skip_of(pattern, after_match, at), select, at)


def absent(rows: DataFrame, pattern: Pattern, *, select: str | None = None) -> DataFrame:
    """Find beginnings of a pattern that are not followed by the rest of it in time.

    One row for each row that meets a first step and begins no match, in a stream as soon as the
    watermark passes the end of its time.

    Args:
        rows: Where to look; a stream must have a watermark.
        pattern: What should have happened.
        select: Columns: those of the key, `began`, `until`, and of the step that began; by default
            all of them.

    Raises:
        DeclarationError: Pattern, rows and selection do not fit together.
    """
    at = location_of_caller()
    check_order(pattern)
    check_absence(pattern)
    from millstream.operators.patterns.search import search

    return search(rows, pattern, None, select, at)
