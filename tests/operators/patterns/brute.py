"""An independent matcher: docs/how-to/patterns.md, rule by rule, over all ways to take rows.

It shares no code with the automaton. A spec says a pattern twice: in SQL, and as Python functions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Meets = Callable[[Mapping[str, Any], Mapping[str, list[Mapping[str, Any]]]], bool]
    Taken = tuple[tuple[int, int, str], ...]  # row, step, name


@dataclass(frozen=True)
class Kind:
    name: str
    sql: str
    meets: Meets


@dataclass(frozen=True)
class StepSpec:
    kinds: tuple[Kind, ...]
    least: int = 1
    most: int | None = 1
    optional: bool = False
    greedy: bool = True
    strict: bool = False
    without: tuple[Kind, ...] = ()


@dataclass(frozen=True)
class Spec:
    steps: tuple[StepSpec, ...]
    within: int
    after_match: str = "skip_past_last"


class Brute:
    def __init__(self, spec: Spec, rows: Sequence[Mapping[str, Any]]) -> None:
        self.spec, self.rows = spec, rows
        """In the order of event time."""

    def matches(self) -> list[Taken]:
        """Matches in the order of their first rows."""
        found = [one for start in range(len(self.rows)) if (one := self._match(start))]
        found.sort(key=lambda one: (one[0], one[1][0][0]))
        chosen: list[Taken] = []
        for _, taken in found:
            if all(taken[0][0] >= self._goes_on(other) for other in chosen):
                chosen.append(taken)
        return sorted(chosen)

    def absences(self) -> list[tuple[int, str]]:
        """The rows that begin the pattern and no match, with the step that each would begin."""
        found = []
        for start in range(len(self.rows)):
            begun = [taken for taken in self._ways(start) if len(taken) == 1]
            if begun and not self._complete(start):
                found.append((start, min(begun, key=self._preference)[0][2]))
        return found

    def _goes_on(self, taken: Taken) -> int:
        """The row before which a chosen match excludes all beginnings."""
        policy, _, step = self.spec.after_match.rstrip(")").partition("(")
        of_step = [row for row, _, name in taken if name == step]
        match policy:
            case "skip_past_last":
                return taken[-1][0] + 1
            case "skip_to_first":
                return of_step[0]
            case "skip_to_last":
                return of_step[-1]
            case _:
                return 0

    def _match(self, start: int) -> tuple[int, Taken] | None:
        """The match that a row begins, and with which row it is complete."""
        ways = self._complete(start)
        if not ways:
            return None
        complete = min(taken[-1][0] for taken in ways)
        best = min((t for t in ways if t[-1][0] == complete), key=self._preference)
        grown = [t for t in ways if t[: len(best)] == best and self._grows(t[len(best) :])]
        return complete, min(grown, key=self._growth)

    def _preference(self, taken: Taken) -> list[int]:
        """Rule 2, less is better: how many rows each step takes."""
        counts = [sum(s == step for _, s, _ in taken) for step in range(len(self.spec.steps))]
        return [
            -count if step.greedy else count
            for step, count in zip(self.spec.steps, counts, strict=True)
        ]

    def _grows(self, further: Taken) -> bool:
        return all(self.spec.steps[step].greedy for _, step, _ in further)

    def _growth(self, taken: Taken) -> list[int]:
        """Rule 3, less is better: for each row the step that takes it, or none."""
        steps = {row: step for row, step, _ in taken}
        return [steps.get(row, len(self.spec.steps)) for row in range(len(self.rows))]

    def _complete(self, start: int) -> list[Taken]:
        return [taken for taken in self._ways(start) if self._is_complete(taken)]

    def _is_complete(self, taken: Taken) -> bool:
        counts = Counter(step for _, step, _ in taken)
        return all(
            counts[number] >= step.least or (step.optional and not counts[number])
            for number, step in enumerate(self.spec.steps)
        )

    def _ways(self, start: int, before: Taken = ()) -> Iterator[Taken]:
        """Every way to take rows from a start, complete or not."""
        for row in range(before[-1][0] + 1, len(self.rows)) if before else [start]:
            for step in range(before[-1][1] if before else 0, len(self.spec.steps)):
                if self._may_take(start, before, row, step):
                    name = self._name(self.spec.steps[step].kinds, row, before)
                    taken = (*before, (row, step, str(name)))
                    yield taken
                    yield from self._ways(start, taken)

    def _may_take(self, start: int, before: Taken, row: int, step: int) -> bool:
        spec = self.spec.steps[step]
        between = range(before[-1][0] + 1, row) if before else range(0)
        return (
            self.rows[row]["at"] - self.rows[start]["at"] <= self.spec.within
            and self._is_next(before, step)
            and self._name(spec.kinds, row, before) is not None
            and not any(self._name(spec.kinds, other, before) for other in between)
            and not (spec.strict and between)
            and not any(self._name(self._guards(before, step), o, before) for o in between)
        )

    def _is_next(self, before: Taken, step: int) -> bool:
        """Whether a step may take a row: it and all between have as many as they may have."""
        last = before[-1][1] if before else -1
        count = sum(s == last for _, s, _ in before)
        if step == last:
            most = self.spec.steps[step].most
            return most is None or count < most
        is_filled = not before or count >= self.spec.steps[last].least
        return is_filled and all(s.optional for s in self.spec.steps[last + 1 : step])

    def _guards(self, before: Taken, step: int) -> list[Kind]:
        passed = range(before[-1][1] + 1, step + 1) if before else range(0)
        return [guard for number in passed for guard in self.spec.steps[number].without]

    def _name(self, kinds: Sequence[Kind], row: int, before: Taken) -> str | None:
        """As which of several kinds a row counts: the first whose condition it meets."""
        past: dict[str, list[Mapping[str, Any]]] = {}
        for number, _, name in before:
            past.setdefault(name, []).append(self.rows[number])
        return next((k.name for k in kinds if k.meets(self.rows[row], past)), None)
