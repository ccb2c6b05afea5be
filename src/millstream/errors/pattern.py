"""Errors of patterns: their steps, their conditions and the rows they are looked for in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from millstream.errors.base import DeclarationError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TimeBoundMissingError(DeclarationError):
    """A pattern has no length of time in which it must happen."""

    code = "TIME_BOUND_MISSING"

    def __init__(self, got: object, *, at: Location) -> None:
        told = "has no time bound" if got is None else f"has within={got!r}: not a length of time"
        super().__init__(
            f"the pattern {told}, so its beginnings would be remembered for ever",
            fix='say in what time it must happen: within="10 minutes"',
            at=at,
        )


PatternFault = Literal[
    "key", "no_step", "all_optional", "never_absent", "open_end", "too_long", "before_the_first",
    "alternatives", "no_alternative", "name", "name_twice", "name_of_a_column",
    "name_of_a_time", "word_of_sql", "times", "after_match", "after_match_step",
]  # fmt: skip
_FAULTS: Mapping[PatternFault, tuple[str, str]] = {
    "key": ("key={got!r} names no columns", 'name those whose rows belong together: key="…"'),
    "never_absent": (
        "its first row is all of it, so that it is never absent",
        "add the step that should follow, or look for it with ms.match",
    ),
    "alternatives": (
        "either() is given {got!r}",
        'give conditions by name: either({{"one": "…", "other": "…"}})',
    ),
    "no_step": ("it has no step", "add one with .step(…)"),
    "all_optional": (
        "every step is optional, so that it would match where nothing happens",
        "have at least one step that must happen",
    ),
    "open_end": (
        "nothing follows without({got!r})",
        "add the step that must come first, or use ms.absent for what did not happen",
    ),
    "too_long": ("it has {got} conditions", "use at most 62"),
    "before_the_first": (
        "without({got!r}) comes before the first step",
        "put it after a step; what must not begin a match belongs into the condition of the first",
    ),
    "no_alternative": ("either() names no alternative", "name at least one, with its condition"),
    "name": ("a step is called {got!r}", "use letters, digits and _, and no _ at the beginning"),
    "name_twice": (
        "two steps are called {got!r}",
        "give each a name of its own; large and small letters are the same to Spark",
    ),
    "name_of_a_time": (
        "the step {got!r} is called as a time that each answer has",
        "give the step another name than began, ended and until",
    ),
    "name_of_a_column": (
        "the step {got!r} is called as a column of the rows",
        "give the step another name",
    ),
    "word_of_sql": (
        "a step is called {got!r}, a word of SQL that cannot stand before a column",
        "give the step another name",
    ),
    "times": ("a step has times={got!r}", "say 2, (1, 3), or (1, None) for any number"),
    "after_match": (
        "after_match={got!r} is not known",
        'use "skip_past_last", "skip_to_next", "skip_to_first(step)" or "skip_to_last(step)"',
    ),
    "after_match_step": (
        "after_match={got!r} names a step that may have no row, or be the first row again",
        "name a step that is always there and comes after the first",
    ),
}


class PatternRefusedError(DeclarationError):
    """The steps of a pattern do not fit together."""

    code = "PATTERN_REFUSED"

    def __init__(self, fault: PatternFault, *, got: object = None, at: Location) -> None:
        what, fix = _FAULTS[fault]
        super().__init__(f"the pattern is refused: {what.format(got=got)}", fix=fix, at=at)


class ConditionRefusedError(DeclarationError):
    """The condition of a step is not one, or cannot be judged exactly."""

    code = "CONDITION_REFUSED"

    def __init__(self, step: str, condition: object, *, why: str, at: Location) -> None:
        super().__init__(
            f"step {step!r} has the condition {condition!r}: {why}",
            fix="write a condition in Spark SQL over the columns of the row, and of earlier steps "
            "as step.column",
            at=at,
        )


class LaterStepError(DeclarationError):
    """A condition refers to a step that has no row yet."""

    code = "LATER_STEP"

    def __init__(self, step: str, *, refers_to: str, at: Location) -> None:
        super().__init__(
            f"the condition of step {step!r} refers to {refers_to!r}, which comes after it",
            fix=f"put the comparison into the condition of {refers_to!r}, where both are there",
            at=at,
        )


class SelectRefusedError(DeclarationError):
    """What is selected of the matches of a pattern cannot be."""

    code = "SELECT_REFUSED"

    def __init__(self, select: str, *, why: str, at: Location) -> None:
        super().__init__(
            f"select={select!r} is refused: {why}",
            fix="name columns of the key, and of steps as step.column or max(step.column), "
            "each with AS and a name where it has none",
            at=at,
        )


class PatternColumnError(DeclarationError):
    """A pattern needs a column that the rows do not have, or not in that way."""

    code = "PATTERN_COLUMN"

    def __init__(
        self, option: str, column: str, *, why: str, columns: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"the pattern has {option}={column!r}, {why}",
            fix=f"{closest(column, columns)}the rows have {listed(columns)}",
            at=at,
        )


class PatternTimeError(DeclarationError):
    """It is not known which column is the event time of the rows of a pattern."""

    code = "PATTERN_TIME"

    def __init__(self, candidates: Sequence[str], *, at: Location) -> None:
        super().__init__(
            f"the rows of the pattern have {len(candidates)} columns of type TIMESTAMP "
            f"({listed(candidates)}), and none is said to be the event time",
            fix='say which orders the rows: ms.pattern(..., event_time="…")',
            at=at,
        )


class UnboundedPatternError(DeclarationError):
    """A pattern is looked for in a stream whose event time has no watermark."""

    code = "PATTERN_UNBOUNDED"

    def __init__(self, column: str, *, at: Location) -> None:
        super().__init__(
            f"the pattern orders a stream by {column!r}, which has no watermark there: it would "
            "wait for earlier rows for ever",
            fix=f'declare the source with event_time="{column}" and a watermark, and keep the '
            "column as it is up to the pattern",
            at=at,
        )
