"""A pattern made ready to run: numbered conditions, and which step may follow which."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from millstream.errors import Location, fault
from millstream.operators.patterns.condition import NotAConditionError, aggregates, path_of
from millstream.operators.patterns.evaluate import NameScope, judge
from millstream.operators.patterns.refusal import pattern_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from millstream.operators.patterns.condition import Condition, Path
    from millstream.operators.patterns.evaluate import Digits, Kind, Past, Seen
    from millstream.operators.patterns.pattern import Pattern, PatternStep, Variable

_MOST_CONDITIONS = 62
"""They are bits of one BIGINT."""


@dataclass(frozen=True, slots=True)
class StepCondition:
    """A condition of a step: its bit, and the comparison with earlier steps."""

    number: int
    compared: Callable[[Seen, Past], bool | None] | None


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """A step, ready to run."""

    variables: tuple[StepCondition, ...]
    without: tuple[StepCondition, ...]
    least: int
    most: int | None
    is_optional: bool
    is_greedy: bool
    is_strict: bool


@dataclass(frozen=True, slots=True)
class AfterMatch:
    """Where matching continues after a match."""

    policy: str
    variables: frozenset[int] = frozenset()
    """Of which step, where the policy names one."""


@dataclass(frozen=True)
class Program:
    """What an automaton runs."""

    places: tuple[ProgramStep, ...]
    within_us: int
    referred: tuple[tuple[int, bool], ...]
    """Steps that conditions refer to, and whether to all of their rows or to the last only."""

    def following(self, step: int, count: int) -> Iterator[tuple[int, int]]:
        """Yield what may come after so many rows of a step, the most preferred first.

        Returns:
            Steps, each with the number of rows it has by then.
        """
        place = self.places[step]
        again = place.most is None or count < place.most
        if again and place.is_greedy:
            yield step, count
        if count >= place.least:
            yield from ((target, 0) for target in self.entered(step + 1))
        if again and not place.is_greedy:
            yield step, count

    def entered(self, step: int) -> tuple[int, ...]:
        """Return the steps that may come after those before `step`, the most preferred first."""
        if step == len(self.places):
            return ()
        place = self.places[step]
        if not place.is_optional:
            return (step,)
        later = self.entered(step + 1)
        return (step, *later) if place.is_greedy else (*later, step)

    def awaited(self, origin: int, target: int) -> int:
        """Return the conditions that matter to a branch, as bits; -1 if every row does.

        Args:
            origin: The step before; the same if it is to be repeated.
            target: The step that is waited for.
        """
        return self._awaited[target][origin + 1]

    @cached_property
    def _awaited(self) -> list[list[int]]:
        ends = range(len(self.places))
        return [[self._bits(origin, target) for origin in range(-1, target + 1)] for target in ends]

    def _bits(self, origin: int, target: int) -> int:
        if self.places[target].is_strict:
            return -1
        crossed = self.places[origin + 1 : target + 1]
        guards = (kept for place in crossed for kept in place.without)
        return sum(1 << kept.number for kept in (*self.places[target].variables, *guards))

    def is_complete(self, step: int, count: int) -> bool:
        """Whether a match may end with so many rows of a step."""
        rest = self.places[step + 1 :]
        return count >= self.places[step].least and all(place.is_optional for place in rest)

    def counted(self, step: int, count: int) -> int:
        """Count a further row; beyond what is needed, any number of rows is the same."""
        place = self.places[step]
        return count + 1 if place.most is not None else min(count + 1, place.least)


def compiled(
    pattern: Pattern, kinds: Mapping[Path, Kind], digits: Mapping[Path, Digits] | None = None
) -> Program:
    """Make a pattern ready to run.

    Args:
        pattern: The pattern.
        kinds: The types of the columns that are compared, in the order of a row's values.
        digits: How many digits those have that are decimals.

    Raises:
        CONDITION_REFUSED: A comparison cannot be judged exactly as Spark does.
    """
    parsed = pattern.parsed()
    numbers = {variable.name: number for number, (variable, _) in enumerate(parsed)}
    columns = {path: (place, kind) for place, (path, kind) in enumerate(kinds.items())}
    steps = {name: numbers[name] for name in pattern.names}
    scope = NameScope(columns, steps, digits or {})
    kept: dict[str, StepCondition] = {}
    for variable, condition in parsed:
        kept[variable.name] = _kept(numbers[variable.name], variable, condition, scope)
    places = tuple(_place(step, kept) for step in pattern.steps)
    whole = frozenset(_referred(parsed, wholly=True))
    last = sorted({*_referred(parsed, wholly=False), *whole})
    referred = tuple((steps[name], name in whole) for name in last if name in steps)
    return Program(places, round(pattern.within.total_seconds() * 1_000_000), referred)


def check_order(pattern: Pattern) -> None:
    """Check that a finished pattern can be run.

    Raises:
        PATTERN_REFUSED: It could match nothing, or does not end with a step.
    """
    if not pattern.steps:
        raise pattern_fault("no_step", at=pattern.at)
    if all(step.is_optional for step in pattern.steps):
        raise pattern_fault("all_optional", at=pattern.at)
    if pattern.pending:
        last = pattern.pending[-1]
        raise pattern_fault("open_end", got=last.name, at=last.at)
    if len(pattern.conditions()) > _MOST_CONDITIONS:
        raise pattern_fault("too_long", got=len(pattern.conditions()), at=pattern.at)


def check_absence(pattern: Pattern) -> None:
    """Check that a pattern can be absent once it has begun.

    Raises:
        PATTERN_REFUSED: Its first row is all of it.
    """
    first, *rest = pattern.steps
    if not first.is_optional and first.least == 1 and all(step.is_optional for step in rest):
        raise pattern_fault("never_absent", at=pattern.at)


def skip_of(pattern: Pattern, after_match: str, at: Location) -> AfterMatch:
    """Read the option `after_match`: `skip_to_last(step)` and the like.

    Raises:
        PATTERN_REFUSED: There is no such policy, or matching would never advance.
    """
    parsed = (
        re.fullmatch(r"(\w+)(?:\((\w+)\))?", after_match) if isinstance(after_match, str) else None
    )
    policy, name = parsed.groups() if parsed else (None, None)
    numbers = {v.name: number for number, (v, _) in enumerate(pattern.conditions())}
    if policy in ("skip_past_last", "skip_to_next") and name is None:
        return AfterMatch(policy)
    if policy not in ("skip_to_first", "skip_to_last") or name not in pattern.names:
        raise pattern_fault("after_match", got=after_match, at=at)
    [place] = [
        p for p, step in enumerate(pattern.steps) if name in [v.name for v in step.variables]
    ]
    step = pattern.steps[place]
    can_lack = step.is_optional or len(step.variables) > 1
    begins = all(earlier.is_optional for earlier in pattern.steps[:place])
    if can_lack or (begins and (policy == "skip_to_first" or step.least == 1)):
        raise pattern_fault("after_match_step", got=after_match, at=at)
    return AfterMatch(policy, frozenset({numbers[name]}))


@cache
def compared_columns(pattern: Pattern) -> tuple[Path, ...]:
    """Return the columns that are compared with, or of, earlier steps."""
    return tuple(sorted({p for _, c in pattern.parsed() for p in compared_paths(pattern, c)}))


def compared_paths(pattern: Pattern, condition: Condition) -> Iterator[Path]:
    """Yield the columns that one condition compares."""
    from sqlglot import exp

    for column in condition.compared.find_all(exp.Column) if condition.compared else ():
        path = path_of(column)
        path = path[1:] if path[0] in pattern.names and len(path) > 1 else path
        if path != ("*",):
            yield path


def _kept(number: int, variable: Variable, condition: Condition, scope: NameScope) -> StepCondition:
    if condition.compared is None:
        return StepCondition(number, None)
    try:
        return StepCondition(number, judge(condition.compared, scope).value)
    except NotAConditionError as error:
        raise fault(
            "CONDITION_REFUSED",
            at=variable.at,
            step=variable.name,
            condition=condition.text,
            why=str(error),
        ) from error


def _place(step: PatternStep, kept: Mapping[str, StepCondition]) -> ProgramStep:
    return ProgramStep(
        tuple(kept[v.name] for v in step.variables),
        tuple(kept[v.name] for v in step.without),
        step.least,
        step.most,
        step.is_optional,
        step.is_greedy,
        step.is_strict,
    )


def _referred(parsed: Iterable[tuple[Variable, Condition]], *, wholly: bool) -> Iterator[str]:
    from sqlglot import exp

    for _, condition in parsed:
        for column in condition.compared.find_all(exp.Column) if condition.compared else ():
            if bool(column.find_ancestor(*aggregates())) is wholly:
                yield path_of(column)[0]
