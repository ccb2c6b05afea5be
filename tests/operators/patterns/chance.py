"""Patterns and streams by chance, and the automaton run over them in cuts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.operators.patterns.brute import Kind, Spec, StepSpec

from millstream.operators.patterns.automaton import FOREVER, Automaton, Found, MatchMemory, Row
from millstream.operators.patterns.evaluate import NameScope, judge
from millstream.operators.patterns.packing import pack, unpack
from millstream.operators.patterns.pattern import Pattern, pattern
from millstream.operators.patterns.program import check_order, compared_columns, compiled, skip_of

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from millstream.operators.patterns.condition import Path
    from millstream.operators.patterns.evaluate import Kind as Type

KINDS: dict[Path, Type] = {("at",): "timestamp", ("v",): "integer", ("w",): "integer"}
_VALUES, _MOST_ROWS = 3, 9
_SECOND = 1_000_000


def is_over(w: int | None, other: int | None) -> bool:
    return w is not None and other is not None and w > other


def total(rows: Sequence[Any]) -> int | None:
    found = [r["w"] for r in rows if r["w"] is not None]
    return sum(found) if found else None


def last(rows: Sequence[Any]) -> Any:
    return rows[-1] if rows else {"v": None, "w": None, "at": None}


def kind(dice: random.Random, name: str, earlier: Sequence[str]) -> Kind:
    """A condition in SQL and in Python; half of them refer to earlier steps, if there are any."""
    a = dice.randrange(_VALUES)
    b = dice.randrange(_VALUES)
    s = dice.choice([*earlier, name])
    alone = [
        Kind(name, f"v = {a}", lambda n, p: n["v"] == a),
        Kind(name, f"v <> {a}", lambda n, p: n["v"] != a),
        Kind(name, f"v IN ({a}, {b})", lambda n, p: n["v"] in (a, b)),
        Kind(name, f"v <= {a} AND w IS NOT NULL", lambda n, p: n["v"] <= a and n["w"] is not None),
    ]
    compared = [
        Kind(name, f"w > {s}.w", lambda n, p: is_over(n["w"], last(p.get(s, []))["w"])),
        Kind(
            name,
            f"v <> {a} AND w = {s}.w",
            lambda n, p: n["v"] != a and n["w"] is not None and n["w"] == last(p.get(s, []))["w"],
        ),
        Kind(
            name,
            f"v <> {a} AND ({s}.w IS NULL OR w > {s}.w)",
            lambda n, p: (
                n["v"] != a
                and (last(p.get(s, []))["w"] is None or is_over(n["w"], last(p.get(s, []))["w"]))
            ),
        ),
        Kind(
            name,
            f"v <> {b} AND NOT (w <= sum({s}.w))",
            lambda n, p: n["v"] != b and is_over(n["w"], total(p.get(s, []))),
        ),
        Kind(
            name,
            f"v <= {a} AND count({s}.w) < 2",
            lambda n, p: n["v"] <= a and sum(r["w"] is not None for r in p.get(s, [])) < 2,
        ),
        Kind(
            name,
            f"v <> {a} AND at - first({s}.at) < INTERVAL 3 SECONDS",
            lambda n, p: n["v"] != a and bool(p.get(s)) and n["at"] - p[s][0]["at"] < 3 * _SECOND,
        ),
    ]
    return dice.choice(compared if earlier and dice.random() < 0.5 else alone)


def step(dice: random.Random, name: str, earlier: Sequence[str], *, is_end: bool) -> StepSpec:
    """A step by chance; one at the end is more often optional and greedy."""
    least = dice.choice([1, 1, 1, 2])
    most = dice.choice([least, least, least + 1, least + 2, None])
    kinds = [kind(dice, name, earlier)]
    if dice.random() < 0.15:
        kinds.append(kind(dice, f"{name}{name}", earlier))
    guards = [kind(dice, f"no_{name}", earlier)] if earlier and dice.random() < 0.25 else []
    guards = [g if f"no_{name}." not in g.sql else kind(dice, g.name, ()) for g in guards]
    return StepSpec(
        tuple(kinds),
        least,
        most,
        optional=dice.random() < (0.7 if is_end else 0.2),
        greedy=dice.random() < (0.8 if is_end else 0.6),
        strict=dice.random() < 0.2,
        without=tuple(guards),
    )


def spec_of(dice: random.Random) -> Spec:
    """A pattern by chance."""
    steps: list[StepSpec] = []
    names: list[str] = []
    count = dice.choice([1, 2, 2, 3, 3, 4])
    ends = dice.choice([0, 1, 2, 2])
    for number, name in enumerate("abcd"[:count]):
        steps.append(step(dice, name, names, is_end=number >= count - ends))
        names += [k.name for k in steps[-1].kinds]
    if all(s.optional for s in steps):
        steps[-1] = replace(steps[-1], optional=False)
    spec = Spec(tuple(steps), dice.choice([2, 4, 6, 20]) * _SECOND)
    return replace(spec, after_match=dice.choice(policies(spec)))


def policies(spec: Spec) -> list[str]:
    found = ["skip_past_last", "skip_to_next"]
    for number, one in enumerate(spec.steps):
        begins = all(s.optional for s in spec.steps[:number])
        if one.optional or len(one.kinds) > 1:
            continue
        found += [f"skip_to_first({one.kinds[0].name})"] * (not begins)
        found += [f"skip_to_last({one.kinds[0].name})"] * (not begins or one.least > 1)
    return found


def rows_of(dice: random.Random) -> list[dict[str, Any]]:
    """A stream by chance, in the order of event time.

    Some rows are at the same instant, some whole seconds apart, some a microsecond more or less.
    """
    rows, at = [], 0
    for _ in range(dice.randint(1, _MOST_ROWS)):
        at += max(0, dice.choice([0, 1, 1, 1, 2]) * _SECOND + dice.choice([-1, 0, 0, 0, 1]))
        row = {"at": at, "v": dice.randrange(_VALUES), "w": dice.choice([None, 1, 2, 3, 4])}
        rows.append(row | {"tie": dice.getrandbits(63)})
    return in_order(rows)


def in_order(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as they follow each other: at the same instant by what Spark makes of all columns."""
    return sorted(rows, key=lambda row: (row["at"], row["tie"]))


def pattern_of(spec: Spec) -> Pattern:
    found = pattern(key="k", within=f"{spec.within // _SECOND} seconds")
    for one in spec.steps:
        for guard in one.without:
            found = found.without(guard.name, guard.sql)
        found = found.either(
            {k.name: k.sql for k in one.kinds},
            times=(one.least, one.most),
            optional=one.optional,
            greedy=one.greedy,
            strict=one.strict,
        )
    check_order(found)
    return found


class Judge:
    """Says which conditions a row meets alone; in an application Spark does."""

    def __init__(self, found: Pattern) -> None:
        scope = NameScope({path: (n, kind) for n, (path, kind) in enumerate(KINDS.items())}, {})
        self._parts = [
            judge(condition.alone, scope).value if condition.alone else None
            for _, condition in found.parsed()
        ]
        self._columns = compared_columns(found)
        self._drops = not any(step.is_strict for step in found.steps)

    def rows(self, rows: Sequence[dict[str, Any]]) -> list[Row]:
        judged = [self._row(row) for row in rows]
        return [row for row in judged if row.mask or not self._drops]

    def _row(self, row: dict[str, Any]) -> Row:
        values = [row["at"], row["v"], row["w"]]
        met = [part is None or part(values, lambda _: []) is True for part in self._parts]
        mask = sum(1 << number for number, yes in enumerate(met) if yes)
        compared = json.dumps({path[0]: row[path[0]] for path in self._columns})
        # What is kept says nothing of the order.
        return Row(row["at"], mask, json.dumps(row), compared, row["tie"])


class Trial:
    """A pattern and a stream, run by the automaton however the stream is cut."""

    def __init__(self, spec: Spec, rows: Sequence[dict[str, Any]]) -> None:
        self.spec, self.rows = spec, rows
        self.pattern = pattern_of(spec)
        self._program = compiled(
            self.pattern, {path: KINDS[path] for path in compared_columns(self.pattern)}
        )
        self._names = [v.name for v, _ in self.pattern.conditions()]
        self._judge = Judge(self.pattern)

    def matches(self, dice: random.Random | None = None) -> list[Any]:
        skip = skip_of(self.pattern, self.spec.after_match, self.pattern.at)
        return self._run(Automaton(self._program, skip), dice)

    def absences(self, dice: random.Random | None = None) -> list[Any]:
        return self._run(Automaton(self._program, None), dice)

    def _run(self, automaton: Automaton, dice: random.Random | None) -> list[Any]:
        """What is found, in the order of first rows, and by the time it must be there."""
        found: list[Found] = []
        memory = MatchMemory()
        waiting, frontier = self._judge.rows(self.rows), 0
        while dice and frontier < 40 * _SECOND:
            before = frontier
            frontier += max(0, dice.randint(0, 6) * _SECOND // 2 + dice.choice([-1, 0, 0, 1]))
            # Those up to the new frontier have come, and any of the others.
            come = [r for r in waiting if r.at <= frontier or dice.random() < 0.3]
            waiting = [r for r in waiting if not any(r is c for c in come)]
            dice.shuffle(come)
            memory.pending += come
            due = automaton.due(memory)
            news = automaton.advance(memory, frontier)
            assert not news or (due is not None and due <= frontier)
            assert all(one.began + self.spec.within > before for one in news)
            found += news
            memory = unpack(pack(memory), self._program)
        memory.pending += waiting
        found += automaton.advance(memory, FOREVER)
        assert pack(memory) is None
        found.sort(key=lambda one: one.rows[0][1].order)
        return [[(self._names[v], json.loads(row.text)) for v, row in one.rows] for one in found]
