"""An independent matcher: all subsequences are tried, and the best of them is chosen.

It shares no code with the automaton. A spec says a pattern twice: in SQL, and as Python functions.
"""

from __future__ import annotations

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

    def matches(self) -> list[tuple[tuple[str, int], ...]]:
        """Matches as they are told: names, each with the number of its row."""
        ends = [(*end, start) for start in range(len(self.rows)) if (end := self._end(start))]
        ends.sort(key=lambda e: (e[0], e[1], e[3]))
        dropped: set[int] = set()
        told = []
        for _, _, taken, start in ends:
            if start not in dropped:
                told.append(tuple((name, number) for number, _, name in taken))
                dropped.update(range(self._goes_on(taken)))
        return told

    def absences(self) -> list[int]:
        """The rows that begin the pattern and are not followed by the rest of it."""
        return [
            start
            for start in range(len(self.rows))
            if any(self._begins(start)) and not self._complete(start)
        ]

    def _begins(self, start: int) -> Iterator[bool]:
        for number in self._reachable(-1):
            yield self._kind(self.spec.steps[number].kinds, start, ()) is not None

    def _goes_on(self, taken: Taken) -> int:
        policy, _, rest = self.spec.after_match.partition("(")
        of_step = [row for row, _, name in taken if name == rest.rstrip(")")]
        match policy:
            case "skip_past_last":
                return taken[-1][0] + 1
            case "skip_to_first":
                return of_step[0]
            case "skip_to_last":
                return of_step[-1]
            case _:
                return 0

    def _end(self, start: int) -> tuple[int, int, Taken] | None:
        """When it is clear what the match of a start is: before (0) or with (1) which row."""
        found = self._complete(start)
        if not found:
            return None
        earliest = min(taken[-1][0] for taken in found)
        best = min((t for t in found if t[-1][0] == earliest), key=self._rank)
        return self._extended(start, best)

    def _complete(self, start: int) -> list[Taken]:
        return [taken for taken in self._all(start, ()) if self._is_complete(taken)]

    def _all(self, start: int, taken: Taken) -> Iterator[Taken]:
        """Every subsequence that may be part of a match, from a start."""
        rows = [start] if not taken else range(taken[-1][0] + 1, len(self.rows))
        for row in rows:
            if self.rows[row]["at"] - self.rows[start]["at"] > self.spec.within:
                break
            for step in range(len(self.spec.steps)):
                name = self._name(taken, row, step)
                if name is not None:
                    longer = (*taken, (row, step, name))
                    yield longer
                    yield from self._all(start, longer)

    def _name(self, taken: Taken, row: int, step: int) -> str | None:
        """As what a row may follow."""
        if not self._may_follow(taken, step):
            return None
        kinds, last = self.spec.steps[step].kinds, taken[-1][1] if taken else -1
        between = range(taken[-1][0] + 1, row) if taken else range(0)
        crossed = range(last + 1, step + 1) if taken else range(0)
        guards = [kind for s in crossed for kind in self.spec.steps[s].without]
        is_broken = (self.spec.steps[step].strict and between) or any(
            self._kind([*kinds, *guards], other, taken) for other in between
        )
        return None if is_broken else self._kind(kinds, row, taken)

    def _may_follow(self, taken: Taken, step: int) -> bool:
        last = taken[-1][1] if taken else -1
        if step == last:
            return self._count(taken) < self._most(step)
        is_done = not taken or self._count(taken) >= self.spec.steps[last].least
        return is_done and step in self._reachable(last)

    def _kind(self, kinds: Sequence[Kind], row: int, taken: Taken) -> str | None:
        past: dict[str, list[Mapping[str, Any]]] = {}
        for number, _, name in taken:
            past.setdefault(name, []).append(self.rows[number])
        return next((k.name for k in kinds if k.meets(self.rows[row], past)), None)

    def _reachable(self, step: int) -> list[int]:
        found = []
        for later in range(step + 1, len(self.spec.steps)):
            found.append(later)
            if not self.spec.steps[later].optional:
                break
        return found

    def _most(self, step: int) -> float:
        most = self.spec.steps[step].most
        return float("inf") if most is None else most

    def _count(self, taken: Taken) -> int:
        return sum(step == taken[-1][1] for _, step, _ in taken)

    def _is_complete(self, taken: Taken) -> bool:
        last = taken[-1][1]
        rest = self.spec.steps[last + 1 :]
        return self._count(taken) >= self.spec.steps[last].least and all(s.optional for s in rest)

    def _rank(self, taken: Taken) -> tuple[tuple[int, ...], ...]:
        """Less is preferred: greedy steps are repeated and entered, reluctant ones left out."""
        ranks: list[tuple[int, ...]] = []
        before = -1
        for _, step, _ in taken:
            if step == before:
                ranks.append((0 if self.spec.steps[step].greedy else 2,))
            else:
                # Each optional step passed over, then the one entered.
                choices = [1 if self.spec.steps[s].greedy else 0 for s in range(before + 1, step)]
                entered = self.spec.steps[step]
                own = (0 if entered.greedy else 1) if entered.optional else 0
                ranks.append((1, *choices, own))
            before = step
        return tuple(ranks)

    def _extended(self, start: int, taken: Taken) -> tuple[int, int, Taken]:
        """Let greedy steps at the end take each further row they can."""
        best, row = taken, taken[-1][0]
        while self._may_grow(taken, row):
            row += 1
            over = row == len(self.rows)
            if over or self.rows[row]["at"] - self.rows[start]["at"] > self.spec.within:
                return row, 0, best
            steps = self._greedy(taken)
            name = {s: self._name(taken, row, s) for s in steps}
            step = next((s for s in steps if name[s]), None)
            if step is not None:
                taken = (*taken, (row, step, str(name[step])))
                best = taken if self._is_complete(taken) else best
        return row, 1, best

    def _greedy(self, taken: Taken) -> list[int]:
        """Which steps may follow greedily, the most preferred first."""
        last, found = taken[-1][1], []
        if self.spec.steps[last].greedy and self._count(taken) < self._most(last):
            found.append(last)
        if self._count(taken) >= self.spec.steps[last].least:
            found += [s for s in self._reachable(last) if self.spec.steps[s].greedy]
        return found

    def _may_grow(self, taken: Taken, row: int) -> bool:
        """Whether any later row could be taken, after those up to `row` were looked at."""
        last = taken[-1]
        skipped = range(last[0] + 1, row + 1)
        for step in self._greedy(taken):
            crossed = range(last[1] + 1, step + 1)
            guards = [k for s in crossed for k in self.spec.steps[s].without]
            is_blocked = any(self._kind(guards, other, taken) for other in skipped)
            if not is_blocked and not (self.spec.steps[step].strict and skipped):
                return True
        return False
