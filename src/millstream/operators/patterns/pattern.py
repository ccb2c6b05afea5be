"""What a pattern is: steps in the order of event time, as users declare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.errors import Location, MillstreamError, fault
from millstream.model.duration import parse_duration
from millstream.operators.patterns.refusal import pattern_fault

if TYPE_CHECKING:
    from millstream.operators.patterns.condition import Condition

Times = int | tuple[int, int | None]

_LONGEST = timedelta(days=366_000)
"""A thousand years: with it, any event time has an end."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A name for rows that meet a condition."""

    name: str
    condition: str
    at: Location


@dataclass(frozen=True, slots=True)
class PatternStep:
    """One place in a pattern: how many rows it takes, of which kind, and what must not precede."""

    variables: tuple[Variable, ...]
    """Alternatives; a row is of the first whose condition it meets."""
    least: int = 1
    most: int | None = 1
    is_optional: bool = False
    is_greedy: bool = True
    is_strict: bool = False
    without: tuple[Variable, ...] = ()
    """What no row may be between the step before and this one."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Steps that follow each other within a time, among the rows of one key."""

    key: tuple[str, ...]
    within: timedelta
    at: Location
    event_time: str | None = None
    tie_by: tuple[str, ...] = ()
    """The columns that order rows at the same instant, before the hash of the row."""
    steps: tuple[PatternStep, ...] = ()
    pending: tuple[Variable, ...] = ()
    """What was added with `without` since the last step."""

    def step(
        self,
        name: str,
        condition: str,
        *,
        times: Times = 1,
        optional: bool = False,
        greedy: bool = True,
        strict: bool = False,
    ) -> Pattern:
        """Add a step: the next row that meets a condition.

        Args:
            name: What its rows are called, in later conditions and in what is selected.
            condition: In Spark SQL, over the columns of the row, and of earlier steps as
                `step.column` (its last row), `sum(step.column)` and the like.
            times: How many rows it takes: 2, (1, 3), or (1, None) for any number.
            optional: Whether it may be left out.
            greedy: Whether it takes as many rows as it can before the match ends, or as few.
            strict: Whether its rows must come directly after the row before, with no other row
                of the key in between.

        Raises:
            PATTERN_REFUSED: The name or the times are not valid.
            CONDITION_REFUSED: The condition is not one.
            LATER_STEP: An earlier condition refers to this step.
        """
        at = location_of_caller()
        variables = (Variable(name, condition, at),)
        return self._with(_step(variables, times, at, optional, greedy, strict), at)

    def either(
        self,
        alternatives: Mapping[str, str],
        *,
        times: Times = 1,
        optional: bool = False,
        greedy: bool = True,
        strict: bool = False,
    ) -> Pattern:
        """Add a step whose rows may be of several kinds; of those a row meets, the first counts.

        Args:
            alternatives: Conditions by name.
            times: How many rows it takes, of whatever kind.
            optional: Whether it may be left out.
            greedy: Whether it takes as many rows as it can before the match ends, or as few.
            strict: Whether its rows must come directly after the row before.

        Raises:
            PATTERN_REFUSED: A name or the times are not valid.
            CONDITION_REFUSED: A condition is not one.
            LATER_STEP: An earlier condition refers to this step.
        """
        at = location_of_caller()
        if not isinstance(alternatives, Mapping):
            raise pattern_fault("alternatives", got=alternatives, at=at)
        variables = tuple(Variable(name, text, at) for name, text in alternatives.items())
        if not variables:
            raise pattern_fault("no_alternative", at=at)
        return self._with(_step(variables, times, at, optional, greedy, strict), at)

    def without(self, name: str, condition: str) -> Pattern:
        """Add what must not happen between the step before and the step that follows.

        Raises:
            PATTERN_REFUSED: The name is not valid, or nothing precedes it.
            CONDITION_REFUSED: The condition is not one.
        """
        at = location_of_caller()
        if not self.steps:
            raise pattern_fault("before_the_first", got=name, at=at)
        grown = replace(self, pending=(*self.pending, Variable(name, condition, at)))
        grown.check_names(at)
        return grown

    def _with(self, step: PatternStep, at: Location) -> Pattern:
        steps = (*self.steps, replace(step, without=self.pending))
        grown = replace(self, steps=steps, pending=())
        grown.check_names(at)
        return grown

    @property
    def names(self) -> tuple[str, ...]:
        """What the steps are called, in order, with the alternatives."""
        return tuple(v.name for step in self.steps for v in step.variables)

    def check_names(self, at: Location) -> None:
        """Check the names and conditions so far.

        Raises:
            PATTERN_REFUSED: A name is not one, or is used twice.
            CONDITION_REFUSED: A condition is not one.
            LATER_STEP: A condition refers to a later step.
        """
        guards = [v.name for step in self.steps for v in step.without]
        names = [*self.names, *guards, *(v.name for v in self.pending)]
        for name in names:
            if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
                raise pattern_fault("name", got=name, at=at)
        folded = [name.lower() for name in names]
        if twice := {name for name in names if folded.count(name.lower()) > 1}:
            raise pattern_fault("name_twice", got=min(twice), at=at)
        for v, _ in self.conditions():
            if not isinstance(v.condition, str):
                why = f"it is a {type(v.condition).__name__}, not text"
                raise fault(
                    "CONDITION_REFUSED", at=v.at, step=v.name, condition=v.condition, why=why
                )
        self._check_conditions()

    def conditions(self) -> list[tuple[Variable, frozenset[str]]]:
        """Every condition, with the names of the steps it may refer to."""
        known: frozenset[str] = frozenset()
        found = []
        for step in self.steps:
            found += [(v, known) for v in step.without]
            found += [(v, known | {v.name}) for v in step.variables]
            known |= {v.name for v in step.variables}
        return [*found, *((v, known) for v in self.pending)]

    def _check_conditions(self) -> None:
        from millstream.operators.patterns.condition import (
            NotAConditionError,
            can_name_step,
            parse,
            references,
        )

        every = [variable for variable, _ in self.conditions()]
        unseen = {v.name for step in self.steps for v in step.without} | {
            v.name for v in self.pending
        }
        for variable, known in self.conditions():
            if variable.name not in unseen and not can_name_step(variable.name):
                raise pattern_fault("word_of_sql", got=variable.name, at=variable.at)
            try:
                parse(variable.condition, known)
                dotted = references(variable.condition)
            except NotAConditionError as error:
                raise fault(
                    "CONDITION_REFUSED",
                    at=variable.at,
                    step=variable.name,
                    condition=variable.condition,
                    why=str(error),
                ) from error
            for other in every:
                if other.name in dotted - known:
                    raise _premature(variable, other.name, is_unseen=other.name in unseen)

    def parsed(self) -> tuple[tuple[Variable, Condition], ...]:
        """Every condition in its two parts: of steps and of what must not happen, in order."""
        from millstream.operators.patterns.condition import parse

        return tuple((v, parse(v.condition, known)) for v, known in self.conditions())


def pattern(
    *,
    key: str | Sequence[str],
    within: str | None = None,
    event_time: str | None = None,
    tie_by: str | Sequence[str] = (),
) -> Pattern:
    """Begin a pattern, to which steps are added; `ms.match` and `ms.absent` look for it.

    Args:
        key: The columns whose rows belong together, such as the card or the device.
        within: The time from the first row of a match to its last, both included.
        event_time: The column that orders the rows; needed if they have several timestamps.
        tie_by: The columns that order rows of a key at the same instant, ascending, a null first,
            such as a sequence number; what is equal in them too is ordered by a hash of the row.

    Raises:
        TIME_BOUND_MISSING: There is no time bound.
        PATTERN_REFUSED: The key is not one column or several, or `tie_by` names no columns.

    >>> fever = pattern(key="patient", within="6 hours").step("first", "degrees > 39")
    >>> fever.step("second", "degrees > first.degrees").names
    ('first', 'second')
    """
    at = location_of_caller()
    names, ties = _names(key), _names(tie_by)
    if not names:
        raise pattern_fault("key", got=key, at=at)
    if ties is None:
        raise pattern_fault("tie_by", got=tie_by, at=at)
    return Pattern(names, _bound(within, at), at, event_time, ties)


def _names(columns: object) -> tuple[str, ...] | None:
    names = (columns,) if isinstance(columns, str) else columns
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        return None
    return tuple(names)


def _bound(within: object, at: Location) -> timedelta:
    try:
        bound = parse_duration(within) if isinstance(within, str) else None
    except ValueError:
        bound = None
    if bound is None or bound > _LONGEST:
        raise fault(
            "TIME_BOUND_MISSING",
            at=at,
            has="has no time bound"
            if within is None
            else f"has within={within!r}: not a length of time",
        )
    return bound


def _step(
    variables: tuple[Variable, ...],
    times: Times,
    at: Location,
    optional: bool,  # noqa: FBT001
    greedy: bool,  # noqa: FBT001
    strict: bool,  # noqa: FBT001
) -> PatternStep:
    least, most = _times(times, at)
    is_optional = optional or least == 0
    return PatternStep(variables, max(least, 1), most, is_optional, greedy, strict)


def _times(times: object, at: Location) -> tuple[int, int | None]:
    match times:
        case bool():
            pass
        case int() if times >= 1:
            return times, times
        case [int() as least, None] if least >= 0 and not isinstance(least, bool):
            return least, None
        case [int() as least, int() as most] if 0 <= least <= most >= 1:
            if not isinstance(least, bool) and not isinstance(most, bool):
                return least, most
    raise pattern_fault("times", got=times, at=at)


def _premature(variable: Variable, refers_to: str, *, is_unseen: bool) -> MillstreamError:
    if is_unseen:
        why = f"{refers_to!r} must not happen, so it has no row"
        return fault(
            "CONDITION_REFUSED",
            at=variable.at,
            step=variable.name,
            condition=variable.condition,
            why=why,
        )
    return fault("LATER_STEP", at=variable.at, step=variable.name, refers_to=refers_to)
