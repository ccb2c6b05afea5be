"""Which faults, in which order: a pure function of the queries of an app and a seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.chaos.fault import (
    SWEPT,
    AtCall,
    AtMoment,
    AtPoint,
    JvmKilled,
    Overtaken,
    WorkersKilled,
    points_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.chaos.fault import Fault, Kind

    from millstream.plan import Query

SHARES: Mapping[Kind, int] = {
    "point": 46,
    "call": 30,
    "moment": 14,
    "worker": 4,
    "jvm": 3,
    "zombie": 3,
}
"""Of a hundred faults, how many are of each kind."""

_LATEST_MOMENT_S = 10.0
_LATEST_AFTER_BATCH_S = 2.0


def schedule(
    queries: Sequence[Query], *, seed: int, points: int, shares: Mapping[Kind, int] = SHARES
) -> tuple[tuple[Fault, ...], ...]:
    """Choose as many faults as asked for, in trials: each is one home, one driver after another.

    System calls are swept on a home of their own, so that both begin with the very first batch.
    A small number of points is a sample of a greater one, with every kind in its share.
    """
    dice = random.Random(f"{seed}:{','.join(query.name for query in queries)}")
    first, steady = _named(queries, steady=False), _named(queries, steady=True)
    room = {"point": len(first) + len(steady), "call": sum(SWEPT.values())}
    count = _divide(points, shares, room)
    early = sorted(dice.sample(range(len(first)), _half(count["point"], first, steady)))
    later: list[Fault] = [*dice.sample(steady, count["point"] - len(early))]
    later += [
        AtMoment(dice.uniform(0, _LATEST_MOMENT_S), whole=dice.random() < 0.5)
        for _ in range(count["moment"])
    ]
    for kind in (WorkersKilled, JvmKilled, Overtaken):
        moments = (dice.uniform(0, _LATEST_AFTER_BATCH_S) for _ in range(count[kind.kind]))
        later += [kind(moment) for moment in moments]
    dice.shuffle(later)
    trials = ((*(first[n] for n in early), *later), _swept(count["call"]))
    return tuple(trial for trial in trials if trial)


def _named(queries: Sequence[Query], *, steady: bool) -> list[AtPoint]:
    """Name every point of every query, in the order in which a new home comes by them."""
    return [
        AtPoint("home_taken", steady=steady),
        *(AtPoint("table_taken", query.name, steady) for query in queries),
        *(AtPoint(point, query.name, steady) for query in queries for point in points_of(query)),
    ]


def _half(count: int, first: Sequence[AtPoint], steady: Sequence[AtPoint]) -> int:
    return max(min(count // 2, len(first)), count - len(steady))


def _divide(
    points: int, shares: Mapping[Kind, int], room: Mapping[str, int]
) -> dict[Kind | str, int]:
    """Divide by shares; what a kind has no room for becomes kills at random moments."""
    whole = sum(shares.values())
    count: dict[Kind | str, int] = dict.fromkeys(SHARES, 0)
    for kind, share in shares.items():
        count[kind] = min(points * share // whole, room.get(kind, points))
    left = points - sum(count.values())
    for kind in sorted(shares, key=lambda kind: -shares[kind]):
        if left and count[kind] < room.get(kind, points) and points * shares[kind] % whole:
            count[kind] += 1
            left -= 1
    count["moment"] += left
    return count


def _swept(count: int) -> tuple[AtCall, ...]:
    """Take the first call of each kind and others evenly spread; the earliest meet a new home."""
    first = [AtCall(call, 1) for call in SWEPT][: (count + 1) // 2]
    others = [AtCall(call, nth) for call in SWEPT for nth in range(2, SWEPT[call] + 1)]
    spread = count - len(first)
    taken = [*first, *(others[n * len(others) // spread] for n in range(spread))]
    return tuple(sorted(taken, key=lambda fault: (fault.nth, fault.call)))
