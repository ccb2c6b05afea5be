"""How a pattern can be wrong: the steps that do not fit together, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.errors import Location, MillstreamError

PatternFault = Literal[
    "key", "tie_by", "no_step", "all_optional", "never_absent", "open_end", "too_long",
    "before_the_first", "alternatives", "no_alternative", "name", "name_twice", "name_of_a_column",
    "name_of_a_time", "word_of_sql", "times", "after_match", "after_match_step",
]  # fmt: skip
_FAULTS: Mapping[PatternFault, tuple[str, str]] = {
    "key": ("key={got!r} names no columns", 'name those whose rows belong together: key="…"'),
    "tie_by": (
        "tie_by={got!r} names no columns",
        'name those that order rows at the same instant: tie_by="…"',
    ),
    "never_absent": (
        "its first row is all of it, so that it is never absent",
        "add the step that should follow, or look for it with ms.match",
    ),
    "alternatives": (
        "either() is given {got!r}",
        'give conditions by name: either({"one": "…", "other": "…"})',
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


def pattern_fault(which: PatternFault, *, got: object = None, at: Location) -> MillstreamError:
    """Refuse a pattern."""
    why, instead = _FAULTS[which]
    return fault("PATTERN_REFUSED", at=at, why=why.format(got=got), instead=instead)
