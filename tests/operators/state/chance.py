"""Functions of a key, rows by chance, and what plain Python says of the same rows."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import millstream as ms
from millstream.model.schema import Schema
from millstream.operators.state.calls import Calls

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from millstream.operators.state.stateful import Stateful

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = "user STRING, at TIMESTAMP, value BIGINT"
GAP, NUDGE, KEPT = 30, 10, 45
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = tuple[str, int, int]
"""User, second and value."""


@ms.stateful(
    key="user",
    state="since TIMESTAMP, values ARRAY<BIGINT>",
    emits="user STRING, what STRING, at TIMESTAMP, since TIMESTAMP, total BIGINT",
    timeout="event 30 seconds",
)
def visits(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Iterator[Any]:
    """Visits that end with 30 quiet seconds; a nudge after 10; big values are reported at once."""
    if timer.fired == "nudge":
        yield user, "nudge", timer.now, state.since, None
    elif timer.fired == "timeout":
        yield user, "end", timer.now, state.since, sum(state.values)
    for row in rows:
        if row.value == 13:
            raise ValueError("unlucky")
        state.since = state.since or row.at
        state.values.append(row.value)
        if row.value > 7:
            yield {"user": user, "what": "big", "at": row.at, "total": row.value}
    if rows:
        timer.set("nudge", timer.now + timedelta(seconds=NUDGE))


@ms.stateful(
    key="user",
    state="n BIGINT, first TIMESTAMP",
    emits="user STRING, n BIGINT, first TIMESTAMP",
    ttl="45 seconds",
)
def counted(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Iterator[Any]:
    """Rows since a key was last forgotten."""
    for row in rows:
        state.n, state.first = (state.n or 0) + 1, state.first or row.at
        yield user, state.n, state.first


def rows_of(dice: random.Random, users: str = "ab", most: int = 12) -> list[Row]:
    return [
        (dice.choice(users), dice.randrange(200), dice.choice((1, 5, 9, 13)))
        for _ in range(dice.randrange(most))
    ]


def wanted_visits(rows: Sequence[Row], until: float) -> Iterator[tuple[Any, ...]]:
    """Visits of one user, by cutting the sorted rows where they are far apart."""
    good = sorted((at, text_of(u, at, v), v) for u, at, v in rows if v != 13 and at <= until)
    for visit in _cut(good, GAP):
        user, since = json.loads(visit[0][1])["user"], visit[0][0]
        yield from ((user, "big", at, None, v) for at, _, v in visit if v > 7)
        times = sorted({at for at, _, _ in visit})
        for at, after in zip(times, [*times[1:], math.inf], strict=True):
            if after > at + NUDGE <= until:
                yield user, "nudge", at + NUDGE, since, None
        if times[-1] + GAP <= until:
            yield user, "end", times[-1] + GAP, since, sum(v for _, _, v in visit)


def wanted_counts(rows: Sequence[Row], until: float) -> Iterator[tuple[Any, ...]]:
    ready = sorted((at, text_of(u, at, v), u) for u, at, v in rows if at <= until)
    for kept in _cut(ready, KEPT):
        yield from ((u, n + 1, kept[0][0]) for n, (_, _, u) in enumerate(kept))


def _cut(rows: Sequence[tuple[Any, ...]], gap: int) -> Iterator[list[tuple[Any, ...]]]:
    """Cut sorted rows where a gap is longer than said."""
    part: list[tuple[Any, ...]] = []
    for row in rows:
        if part and row[0] > part[-1][0] + gap:
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def text_of(user: str, second: int, value: int) -> str:
    at = (NOON + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")
    return json.dumps({"user": user, "at": at, "value": value}, separators=(",", ":"))


def us_of(second: float) -> Any:
    if not math.isfinite(second):
        return second
    return (NOON + timedelta(seconds=second) - _EPOCH) // timedelta(microseconds=1)


def calls_of(function: Stateful, *, streams: bool = True, tolerates: bool = True) -> Calls:
    schema = Schema.parse(COLUMNS)
    key = Schema(tuple(f for f in schema.fields if f.name in function.declared.key))
    return Calls(
        function.declared, function.function, key, schema, streams=streams, tolerates=tolerates
    )


def reported(answers: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Read answers, with times as seconds; plain ones are as they were given."""
    texts = [str(answer[0]) for answer in answers if str(answer[0]).startswith("{")]
    if not texts:
        return [*answers]
    return [tuple(_seconds(v) for v in json.loads(text).values()) for text in texts]


def _seconds(value: Any) -> Any:
    if isinstance(value, str) and value.endswith("Z"):
        return (datetime.fromisoformat(value) - NOON) // timedelta(seconds=1)
    return value


def streamed(
    function: Stateful, rows: Sequence[Row], dice: random.Random, until: float
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Have the rows of one user arrive in cuts, never behind the frontier."""
    calls, key = calls_of(function), json.dumps({"user": rows[0][0]})
    waiting, frontier, packed = list(rows), -math.inf, None
    due: int | None = None
    answers: list[Any] = []
    raised: list[str] = []
    while waiting or frontier < until:
        frontier = min(max(frontier, dice.randrange(-20, 360)), until)
        come = [r for r in waiting if r[1] <= frontier or dice.random() < 0.4]
        waiting = [r for r in waiting if not any(r is c for c in come)]
        if frontier == until:
            come, waiting = [*come, *waiting], []
        dice.shuffle(come)
        given = [(us_of(at), text_of(u, at, v)) for u, at, v in come]
        is_due = due is not None and due <= us_of(frontier)
        turn = calls.turn(key, packed, given, us_of(frontier))
        assert given or is_due or not turn.answers
        packed, due = turn.packed, turn.due_us
        answers += turn.answers
        raised += [one.row for one in turn.raised]
    return reported(answers), raised


def batched(function: Stateful, rows: Sequence[Row], until: float) -> list[tuple[Any, ...]]:
    calls, end = calls_of(function, streams=False), us_of(max(at for _, at, _ in rows))
    given = [(us_of(at), text_of(u, at, v), end) for u, at, v in rows]
    return reported(calls.turn(json.dumps({"user": rows[0][0]}), None, given, us_of(until)).answers)
