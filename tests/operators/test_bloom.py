"""One row of each key, as far as Bloom filters know: the rule is in docs/how-to/sketches.md."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.apps import READING, reading, rows, run, timed
from tests.faults import raises

import millstream as ms
from millstream.operators.bloom import SeenKeys
from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def keys(dice: random.Random, count: int) -> list[tuple[int, int, str]]:
    """Rows of keys that were never there: two hashes and a text."""
    one, other = ([dice.getrandbits(64) - 2**63 for _ in range(count)] for _ in range(2))
    return [(a, b, f"{a}:{b}") for a, b in zip(one, other, strict=True)]


@pytest.mark.parametrize("error", [0.1, 0.01, 0.001])
def test_no_more_first_rows_are_left_out_than_the_error_says(error: float) -> None:
    dice, seen = random.Random(f"bloom {error}"), SeenKeys.of(error)
    packed, sent, kept = None, 0, 0

    for _ in range(400):
        arrived = keys(dice, 100)
        turn = seen.turn("0", packed, arrived, 0)
        packed, sent, kept = turn.packed, sent + len(arrived), kept + len(turn.answers)

    left_out, deviation = (sent - kept) / sent, (error / sent) ** 0.5
    assert left_out <= error + 4 * deviation
    assert left_out > error / 10


def test_a_small_error_is_kept_as_well() -> None:
    dice, seen, error = random.Random(1), SeenKeys.of(1e-6), 1e-6
    packed, sent, left_out = None, 300_000, 0

    for _ in range(sent // 1000):
        turn = seen.turn("0", packed, keys(dice, 1000), 0)
        packed, left_out = turn.packed, left_out + 1000 - len(turn.answers)

    assert left_out <= error * sent + 4 * (error * sent) ** 0.5


def test_the_last_keys_are_never_kept_twice_and_state_has_one_size() -> None:
    dice, seen = random.Random(7), SeenKeys.of(0.001)
    packed, sent, sizes = None, dict[tuple[int, int, str], None](), set[int]()

    for _ in range(300):
        fresh = keys(dice, 40)
        again = dice.sample([*sent][-1000:], min(20, len(sent)))
        turn = seen.turn("0", packed, [*fresh, *again], 0)
        reported = {text for (text,) in turn.answers}
        assert not reported & {text for *_, text in again}
        packed = turn.packed
        sizes.add(len(packed or b""))
        for one in (*fresh, *again):
            # The last of a dictionary is what came last.
            sent.pop(one, None)
            sent[one] = None

    assert max(sizes) < 5 * 1000
    assert len(sizes) <= 6


def test_a_key_that_comes_again_and_again_is_never_kept_twice() -> None:
    dice, seen = random.Random(11), SeenKeys.of(0.001)
    [often], packed, kept = keys(dice, 1), None, 0

    for _ in range(100):
        turn = seen.turn("0", packed, [often, *keys(dice, 50)], 0)
        packed, kept = turn.packed, kept + turn.answers.count((often[2],))

    assert kept == 1


def test_rows_are_the_same_in_whatever_order_they_come() -> None:
    dice, seen = random.Random(3), SeenKeys.of(0.2)
    arrived = keys(dice, 60)

    one = seen.turn("0", None, arrived, 0)
    other = seen.turn("0", None, arrived[::-1], 0)

    assert (one.packed, one.answers) == (other.packed, other.answers)


@pytest.mark.spark
def test_a_stream_keeps_one_row_of_each_key_and_goes_on_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    app = timed(source)

    @app.table
    def once(readings: DataFrame) -> DataFrame:
        return ms.dedup(readings, "id", error=0.001, remembers=5_000)

    source.add(*(reading(n, "12:00:00") for n in (1, 2, 2, 3)))
    run(app, tmp_path)
    source.add(*(reading(n, "12:00:01") for n in (3, 4, 1)))
    run(app, tmp_path)

    assert rows(tmp_path, "once", "id") == [(1,), (2,), (3,), (4,)]


@pytest.mark.spark
def test_options_that_do_not_fit_are_refused(spark: SparkSession) -> None:
    frame = spark.range(3)

    with raises("OPERATOR_OPTION", match="not a share of rows"):
        ms.dedup(frame, "id", error=2)
    with raises("OPERATOR_OPTION", match="not a number of keys"):
        ms.dedup(frame, "id", error=0.1, remembers=0)
    with raises("OPERATOR_OPTION", match="it has within as well"):
        ms.dedup(frame, "id", error=0.1, within="1 hour")
