"""The automaton: finds the matches among the rows of one key, in the order of event time.

Every row that may begin the pattern does. From there each way to continue is a branch that waits
for one step; branches stand in the order of preference, and of two that have the same future the
less preferred one is dropped. The first row that completes a branch completes the match; from then
on its branches are the ways to grow that are better than the best complete one so far.

Matches are chosen in the order in which they are complete. Except with `skip_to_next`, what began
earlier than a complete match and is not complete is dropped: either that match is chosen, which
excludes it, or the one that excludes the match excludes it as well. So complete matches come first
in the order of beginnings, and the first of them is the next to be chosen.
"""

from __future__ import annotations

import math
import operator
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.operators.patterns.program import AfterMatch, Program, StepCondition

FOREVER = math.inf
"""The frontier where all rows are there."""


@dataclass(slots=True, eq=False)
class Row:
    """A row as the automaton sees it."""

    at: int
    """Its event time, in microseconds since 1970."""
    mask: int
    """Which conditions it meets, as far as they look at it alone."""
    text: str
    """What is kept of it for the answer."""
    compared: str = "{}"
    """The values that are compared with other rows, as JSON of a struct."""
    tie: int | str = 0
    """Its place among rows at the same instant, in a form that sorts: see `patterns.tie`."""
    number: int = -1
    _values: list[Any] | None = field(default=None, repr=False)

    @property
    def values(self) -> list[Any]:
        """The values that are compared with other rows."""
        if self._values is None:
            self._values = [*msgspec.json.decode(self.compared).values()]
        return self._values

    @property
    def order(self) -> tuple[int, int | str, str, int, str]:
        """Its place among the rows of its key, whatever order they arrived in.

        What is kept for the answer counts only where the hashes of different rows are the same.
        """
        return self.at, self.tie, self.text, self.mask, self.compared


@dataclass(slots=True, eq=False)
class Link:
    """A row that was taken for a step, and those before it."""

    before: Link | None
    variable: int
    row: Row
    future: tuple[int, ...]
    """What later conditions can see of the rows so far."""

    def chain(self) -> Iterator[Link]:
        """The links, the last one first."""
        link: Link | None = self
        while link is not None:
            yield link
            link = link.before

    def rows(self, variable: int) -> list[list[Any]]:
        """What is compared of the rows of a step, in order."""
        found = [link.row.values for link in self.chain() if link.variable == variable]
        return found[::-1]


class Branch(NamedTuple):
    """One way to continue: it waits for a row of one step."""

    origin: int
    """The step before; the same if it is to be repeated."""
    target: int
    so_far: int
    """How many rows the step has."""
    link: Link | None


@dataclass(slots=True, eq=False)
class Begun:
    """A row that begins the pattern, and the branches from there."""

    first: Row
    variable: int
    branches: list[Branch]
    match: Link | None = None
    """The match, once there is one; it may still grow."""

    @property
    def is_over(self) -> bool:
        """Whether it is a match that cannot grow."""
        return self.match is not None and not self.branches

    def awaits(self, program: Program) -> int:
        """Return the conditions that a row must meet to matter, as bits; -1 if none."""
        every = [program.awaited(branch.origin, branch.target) for branch in self.branches]
        return reduce(operator.or_, every, 0)


class Beginnings:
    """Beginnings, in the order of their first rows and indexed by what they wait for.

    A row is shown to those that wait for one like it, so that many which wait for what does not
    come cost nothing.
    """

    def __init__(self) -> None:
        self._in_order: OrderedDict[int, Begun] = OrderedDict()
        self._awaited: dict[int, int] = {}
        self._waiting: defaultdict[int, dict[int, Begun]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._in_order)

    def __iter__(self) -> Iterator[Begun]:
        return iter(self._in_order.values())

    def __contains__(self, begun: Begun) -> bool:
        return begun.first.number in self._in_order

    @property
    def first(self) -> Begun:
        """The earliest."""
        return next(iter(self))

    def put(self, begun: Begun, awaits: int) -> None:
        """Add one after all others, or update what one waits for."""
        number = begun.first.number
        if self._awaited.get(number) != awaits:
            self._wait_no_longer(number)
            self._waiting[awaits][number] = begun
            self._awaited[number] = awaits
        self._in_order[number] = begun

    def remove(self, begun: Begun) -> None:
        """Remove one."""
        number = begun.first.number
        self._wait_no_longer(number)
        del self._in_order[number]

    def remove_before(self, number: int) -> None:
        """Remove those whose first row comes before a row."""
        while self._in_order and self.first.first.number < number:
            self.remove(self.first)

    def remove_excluded(self, match: Begun, number: int) -> None:
        """Remove those whose first row comes before a row, except complete ones up to a match."""
        began = takewhile(lambda other: other.first.number < number, self)
        last = match.first.number
        for other in [o for o in began if o.match is None or o.first.number > last]:
            self.remove(other)

    def waiting_for(self, mask: int) -> list[Begun]:
        """Those to which a row that meets some conditions may matter, in order."""
        groups = [g for awaits, g in self._waiting.items() if awaits < 0 or awaits & mask]
        return [self._in_order[n] for n in sorted(chain.from_iterable(groups))]

    def _wait_no_longer(self, number: int) -> None:
        awaits = self._awaited.pop(number, None)
        if awaits is not None:
            del self._waiting[awaits][number]
            if not self._waiting[awaits]:
                del self._waiting[awaits]


@dataclass(slots=True)
class MatchMemory:
    """The memory of a key."""

    begun: Beginnings = field(default_factory=Beginnings)
    pending: list[Row] = field(default_factory=list)
    """Rows that the frontier has not passed."""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A match, or an absence: when it began, when it was over, and its rows by step."""

    began: int
    ended: int
    rows: tuple[tuple[int, Row], ...]


@dataclass(frozen=True)
class Automaton:
    """Runs a pattern over the rows of one key at a time; it holds no state itself."""

    program: Program
    skip: AfterMatch | None
    """Where matching continues; None to look for beginnings that are not followed."""

    def advance(self, memory: MatchMemory, frontier: float) -> list[Found]:
        """Process the rows up to a time; no row up to that time can still arrive."""
        due = [row for row in memory.pending if row.at <= frontier]
        memory.pending = [row for row in memory.pending if row.at > frontier]
        found: list[Found] = []
        for row in sorted(due, key=lambda row: row.order):
            found += self._expired(memory, row.at - 1)
            found += self._taken(memory, row)
        return [*found, *self._expired(memory, frontier)]

    def due(self, memory: MatchMemory) -> int | None:
        """Return the time that the frontier must reach for anything to happen."""
        moments = [row.at for row in memory.pending]
        if memory.begun:
            moments.append(self._deadline(memory.begun.first))
        return min(moments, default=None)

    def _deadline(self, begun: Begun) -> int:
        return begun.first.at + self.program.within_us

    def _expired(self, memory: MatchMemory, frontier: float) -> Iterator[Found]:
        while memory.begun and self._deadline(memory.begun.first) <= frontier:
            begun = memory.begun.first
            memory.begun.remove(begun)
            if begun.match is not None and self.skip is not None:
                yield self._matched(memory, begun)
            elif begun.match is None and self.skip is None:
                rows = ((begun.variable, begun.first),)
                yield Found(begun.first.at, self._deadline(begun), rows)
            yield from self._chosen(memory)

    def _taken(self, memory: MatchMemory, row: Row) -> Iterator[Found]:
        row.number = memory.count
        memory.count += 1
        moved = memory.begun.waiting_for(row.mask)
        for begun in moved:
            self._follow(begun, row)
        if new := self._begin(row):
            moved.append(new)
        for begun in moved:
            memory.begun.put(begun, begun.awaits(self.program))
        yield from self._over(memory, moved, row)

    def _over(self, memory: MatchMemory, moved: Sequence[Begun], row: Row) -> Iterator[Found]:
        """Remove the beginnings that a row decides, and return their matches."""
        for begun in moved:
            if begun not in memory.begun:
                continue
            if begun.match is None:
                if self.skip is not None and not begun.branches:
                    memory.begun.remove(begun)
            elif self.skip is None:
                memory.begun.remove(begun)
            elif self.skip.policy != "skip_to_next":
                if begun.match.row is row:
                    past_last = self.skip.policy == "skip_past_last"
                    end = row.number + 1 if past_last else begun.first.number
                    memory.begun.remove_excluded(begun, end)
                if not begun.branches:
                    yield from self._chosen(memory)
            elif not begun.branches:
                memory.begun.remove(begun)
                yield self._matched(memory, begun)

    def _chosen(self, memory: MatchMemory) -> Iterator[Found]:
        """Return matches that cannot grow, as long as none before them can."""
        while memory.begun and (begun := memory.begun.first).is_over:
            memory.begun.remove(begun)
            yield self._matched(memory, begun)

    def _matched(self, memory: MatchMemory, begun: Begun) -> Found:
        assert begun.match is not None
        assert self.skip is not None
        links = [*begun.match.chain()][::-1]
        of_step = [k.row.number for k in links if k.variable in self.skip.variables]
        match self.skip.policy:
            case "skip_past_last":
                continue_at = links[-1].row.number + 1
            case "skip_to_first":
                continue_at = of_step[0]
            case "skip_to_last":
                continue_at = of_step[-1]
            case _:
                continue_at = 0
        memory.begun.remove_before(continue_at)
        rows = tuple((link.variable, link.row) for link in links)
        return Found(begun.first.at, links[-1].row.at, rows)

    def _begin(self, row: Row) -> Begun | None:
        waiting = [Branch(-1, target, 0, None) for target in self.program.entered(0)]
        begun = Begun(row, -1, waiting)
        self._follow(begun, row)
        links = [branch.link for branch in begun.branches] + [begun.match]
        first = next((link for link in links if link is not None), None)
        if first is None:
            return None
        begun.variable = first.variable
        begun.branches = [branch for branch in begun.branches if branch.link is not None]
        return begun

    def _follow(self, begun: Begun, row: Row) -> None:
        """Have the branches that wait for such a row take it."""
        grows = begun.match is not None
        branches: list[Branch] = []
        passed: list[Branch] = []
        for branch in begun.branches:
            # A match that grows prefers taking a row in any way to skipping it in a better one.
            if passed and not (grows and passed[0].link is branch.link):
                branches += passed
                passed = []
            variable = self._variable(branch, row)
            if variable is None:
                if not self._ends(branch, row):
                    passed.append(branch)
                continue
            link = linked(self.program, branch.link, variable, row)
            count = self.program.counted(branch.target, branch.so_far)
            is_complete = self.program.is_complete(branch.target, count)
            waiting = self._waiting(branch.target, count, link, greedily=grows or is_complete)
            if is_complete:
                begun.match = link
                begun.branches = [*_distinct([*branches, *waiting])] if grows else [*waiting]
                return
            branches += waiting
        begun.branches = list(_distinct([*branches, *passed]))

    def _waiting(self, step: int, count: int, link: Link, *, greedily: bool) -> Iterator[Branch]:
        for target, so_far in self.program.following(step, count):
            if not greedily or self.program.places[target].is_greedy:
                yield Branch(step, target, so_far, link)

    def _variable(self, branch: Branch, row: Row) -> int | None:
        """Return the variable that a row is taken for; None if it is not taken."""
        for kept in self.program.places[branch.target].variables:
            if _meets(kept, row, branch.link):
                return kept.number
        return None

    def _ends(self, branch: Branch, row: Row) -> bool:
        """Whether a row that is not taken ends the wait."""
        if self.program.places[branch.target].is_strict:
            return True
        crossed = range(branch.origin + 1, branch.target + 1)
        return any(
            _meets(kept, row, branch.link)
            for step in crossed
            for kept in self.program.places[step].without
        )


def linked(program: Program, before: Link | None, variable: int, row: Row) -> Link:
    """Take a row for a step."""
    future = list(before.future) if before else [-1] * len(program.referred)
    link = Link(before, variable, row, ())
    for place, (referred, wholly) in enumerate(program.referred):
        if referred == variable:
            future[place] = id(link) if wholly else row.number
    link.future = tuple(future)
    return link


def _meets(kept: StepCondition, row: Row, link: Link | None) -> bool:
    if not row.mask >> kept.number & 1:
        return False
    if kept.compared is None:
        return True
    return kept.compared(row.values, link.rows if link else _none) is True


def _none(_: int) -> list[list[Any]]:
    return []


def _distinct(branches: Sequence[Branch]) -> Iterator[Branch]:
    """Leave out branches whose future a more preferred one has too."""
    known: set[tuple[int, ...]] = set()
    for branch in branches:
        future = branch.link.future if branch.link else ()
        same = (branch.origin, branch.target, branch.so_far, *future)
        if same not in known:
            known.add(same)
            yield branch
