"""Rows of one key, in whatever cuts they arrive: as in one go, and as DuckDB has it."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from millstream.operators.dedup_within import Once
from millstream.operators.joins.latest import Latest
from millstream.operators.joins.until import Until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.operators.state.parts import Keyed

Row = tuple[Any, ...]

DELAY = 8


def cuts(dice: random.Random, rows: Sequence[Row]) -> Iterator[tuple[list[Row], float]]:
    """Rows in an order that a watermark allows, cut into batches with a frontier each."""
    late = sorted(((row[0] + dice.randrange(DELAY), n) for n, row in enumerate(rows)))
    order, seen = [rows[n] for _, n in late], -math.inf
    while order:
        taken = dice.randrange(1, 5)
        batch, order = order[:taken], order[taken:]
        # The frontier of a batch is what the batches before it say.
        yield batch, seen - DELAY
        seen = max(seen, *(row[0] for row in batch))
    yield [], seen - DELAY
    yield [], 10**9


def played(keyed: Keyed, batches: Iterator[tuple[list[Row], float]]) -> list[Row]:
    """Turns as a bucket gives them: with rows, or when a key is due."""
    packed, due, answers = None, None, list[Row]()
    for rows, frontier in batches:
        if rows or (due is not None and due <= frontier):
            turn = keyed.turn("k", packed, rows, frontier)
            packed, due = turn.packed, turn.due_us
            answers += turn.answers
            assert due is None or due > frontier
    return answers


def events(dice: random.Random, name: str) -> list[tuple[int, str]]:
    return [(dice.randrange(40), f"{name}{n}") for n in range(dice.randrange(12))]


def test_repetitions_are_left_out_in_any_cut_as_in_one_go() -> None:
    for seed in range(500):
        dice = random.Random(seed)
        rows, within = events(dice, "r"), dice.randrange(0, 12)
        wanted, kept = [], -math.inf
        for us, text in sorted(rows):
            if us - kept > within:
                wanted.append((text,))
                kept = us

        assert played(Once(within), cuts(dice, rows)) == wanted, seed
        assert played(Once(within), iter([(rows, math.inf)])) == wanted, seed


def test_the_latest_row_as_of_an_event_is_that_of_duckdb_in_any_cut() -> None:
    tables: dict[str, list[Row]] = {"events": [], "reference": [], "found": []}
    for seed in range(500):
        dice = random.Random(seed)
        left, right = events(dice, "e"), list({us: (us, t) for us, t in events(dice, "r")}.values())
        rows = [(us, 0, text) for us, text in left] + [(us, 1, text) for us, text in right]
        inner = played(Latest(None, is_inner=True), cuts(dice, rows))
        aged = played(Latest(5, is_inner=False), cuts(dice, rows))
        whole = played(Latest(5, is_inner=False), iter([(rows, math.inf)]))

        assert aged == whole, seed
        assert len(aged) == len(left)
        assert {t: r for t, r in aged if r} == {
            t: r for t, r in inner if _us(left, t) - _us(right, r) <= 5
        }
        tables["events"] += [(seed, us, text) for us, text in left]
        tables["reference"] += [(seed, us, text) for us, text in right]
        tables["found"] += [(seed, e, r) for e, r in inner]

    con = duckdb.connect()
    for name, reported in tables.items():
        con.register(
            name, pa.table(dict(zip("kab", map(list, zip(*reported, strict=True)), strict=True)))
        )
    differ = """
        WITH wanted AS (
            SELECT e.k, e.b, r.b FROM events e ASOF JOIN reference r ON e.k = r.k AND e.a >= r.a
        )
        (FROM wanted EXCEPT ALL FROM found) UNION ALL (FROM found EXCEPT ALL FROM wanted)
    """
    assert con.sql(differ).fetchall() == []
    assert len(tables["found"]) > 1_000


HOWS: tuple[Any, ...] = ("inner", "left", "right", "full", "semi")


@pytest.mark.parametrize("how", HOWS)
def test_rows_are_joined_until_their_own_end_in_any_cut_as_all_pairs_have_it(how: Any) -> None:
    found = 0
    for seed in range(2_000):
        dice = random.Random(seed)
        left = [(us, us + dice.randrange(-2, 15), text) for us, text in events(dice, "l")]
        right = events(dice, "r")
        pairs: list[Row] = [
            (one, other)
            for us, end, one in left
            for other_us, other in right
            if us <= other_us <= end
        ]
        alone = [(one, "") for _, _, one in left if one not in {pair[0] for pair in pairs}]
        others = [("", other) for _, other in right if other not in {pair[1] for pair in pairs}]
        by_how: dict[str, list[Row]] = {
            "inner": pairs,
            "left": [*pairs, *alone],
            "right": [*pairs, *others],
            "full": [*pairs, *alone, *others],
            "semi": [*{one: (one,) for one, _ in pairs}.values()],
        }
        wanted = by_how[how]
        rows = [(us, 0, end if end >= us else us - 1, text) for us, end, text in left]
        rows += [(us, 1, us, text) for us, text in right]

        for batches in (cuts(dice, rows), iter([(rows, math.inf)])):
            answers = played(Until(how), batches)
            taken = [answer[:1] for answer in answers] if how == "semi" else answers
            assert sorted(taken) == sorted(wanted), seed
        found += len(wanted)
    assert found > 4_000


@pytest.mark.parametrize("age_us", [None, 4])
def test_a_reference_row_that_arrived_batches_earlier_counts_until_the_next_one(
    age_us: int | None,
) -> None:
    latest = Latest(age_us, is_inner=False)
    batches: list[tuple[list[Row], float]] = [
        ([(3, 1, "r3"), (5, 1, "r5")], 4),
        ([(12, 0, "e12")], 8),
        ([(9, 0, "e9")], 8),
        ([], 10),
        ([(20, 1, "r20")], 30),
    ]

    answers = played(latest, iter(batches))

    assert answers == [("e9", "r5"), ("e12", "r5" if age_us is None else "")]


def _us(rows: Sequence[tuple[int, str]], text: str) -> int:
    return next(us for us, t in rows if t == text)
