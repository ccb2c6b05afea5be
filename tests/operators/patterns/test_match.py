"""Patterns in DataFrames: whatever types rows have, in a batch and in a stream."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.faults import raises
from tests.operators.patterns.brute import Brute
from tests.operators.patterns.chance import Trial, in_order, pattern_of, rows_of, spec_of

import millstream as ms
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing import Script

    Streams = dict[str, list[dict[str, Any]]]

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TX = "card STRING, at TIMESTAMP, amount DOUBLE, country STRING, kind STRING"
RICH = f"{TX}, price DECIMAL(10,2), n BIGINT, f FLOAT, m MAP<STRING, INT>, place STRUCT<x DOUBLE>"

fraud = (
    ms.pattern(key="card", within="10 minutes")
    .step("small", "amount < 1")
    .step("probe", "amount < 5", times=(1, 3))
    .without("reset", "kind = 'pin_ok'")
    .step("big", "amount > 500 AND country != small.country")
)


def tx(second: float, amount: float, country: str = "de", kind: str = "buy") -> tuple[Any, ...]:
    return "ann", NOON + timedelta(seconds=second), float(amount), country, kind


def rich(*rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    extra = [
        (Decimal("1.10"), 2**60 + 1, 0.1, {"a": 1}, (float("nan"),)),
        (Decimal("2.20"), 2**60 + 3, 0.2, None, (None,)),
        (None, None, None, {}, None),
        (Decimal("-0.01"), -1, -0.0, {"b": None}, (1e-320,)),
    ]
    return [(*row, *more) for row, more in zip(rows, extra, strict=True)]


def test_a_match_has_its_rows_as_they_were_and_what_is_selected_of_them(
    spark: SparkSession,
) -> None:
    rows = rich(tx(0.000001, 0.5), tx(1, 2.5), tx(2, 3.5), tx(3.000003, 600, "fr"))
    history = spark.createDataFrame(rows[::-1], RICH)

    [whole] = ms.match(history, fraud).collect()
    [chosen] = ms.match(
        history,
        fraud,
        select="card, small.at AS since, big.amount, sum(probe.amount) AS probed, "
        "sum(probe.n) AS n, avg(probe.n) AS mean, sum(probe.price) AS price, "
        "count(probe.price) AS prices, count(probe.*) AS rows, max(probe.amount) AS top, "
        "first(probe.price) AS first, probe.price AS last, min(probe.place.x) AS x, ended",
    ).collect()

    assert [tuple(map(str, whole.small)), *(tuple(map(str, p)) for p in whole.probe)] == [
        tuple(map(str, row)) for row in spark.createDataFrame(rows[:3], RICH).collect()
    ]
    assert whole.big.place.x == 1e-320
    assert (whole.ended - whole.began).microseconds == 2
    assert tuple(chosen)[2:-1] == (
        600.0, 6.0, 2**60 + 3, float(2**60 + 3), Decimal("2.20"), 1, 2, 3.5,
        Decimal("2.20"), None, None,
    )  # fmt: skip


def test_a_step_that_is_left_out_is_null_and_its_rows_are_those_of_the_next(
    spark: SparkSession,
) -> None:
    rows = spark.createDataFrame([tx(n, n, kind=kind) for n, kind in enumerate("abc")], TX)
    ends = (
        ms.pattern(key="card", within="20 seconds")
        .step("s0", "kind = 'a'")
        .step("s1", "kind = 'b'", times=2, optional=True)
        .step("s2", "kind IN ('b', 'c')", times=(1, 3), optional=True)
        .step("s3", "kind = 'd'", optional=True)
    )

    [whole] = ms.match(rows, ends).collect()
    [chosen] = ms.match(
        rows, ends, select="s1.kind AS k, sum(s1.amount) AS sum, count(s1.*) AS n"
    ).collect()

    assert (whole.s1, whole.s3) == (None, None)
    assert [row.kind for row in whole.s2] == ["b", "c"]
    assert tuple(chosen) == (None, None, 0)


def test_what_does_not_fit_is_refused_with_the_line_of_the_pattern(spark: SparkSession) -> None:
    rows = spark.createDataFrame([], RICH)
    begun = ms.pattern(key="card", within="1 hour").step("small", "amount < 1")
    twice = rows.selectExpr("*", "at AS later")
    both = begun.step("big", "amount > 500")
    by_end = ms.pattern(key="ended", within="1 hour").step("small", "amount < 1")
    column: Any = F.col("amount") > 1
    long = rows.selectExpr("*", "CAST(n AS DECIMAL(38,18)) AS d")
    faults: list[tuple[str, Callable[[], object]]] = [
        ("CONDITION_REFUSED", lambda: ms.match(rows, begun.step("b", "nope > 1"))),
        ("CONDITION_REFUSED", lambda: ms.match(rows, begun.step("b", "kind"))),
        ("CONDITION_REFUSED", lambda: ms.match(rows, begun.step("b", "kind = small.amount"))),
        ("CONDITION_REFUSED", lambda: ms.match(rows, begun.step("b", "nope = small.nope"))),
        ("CONDITION_REFUSED", lambda: ms.match(rows, begun.step("b", "place = small.place"))),
        ("CONDITION_REFUSED", lambda: ms.match(rows, begun.step("b", "q.w.e.r.t > small.n"))),
        ("CONDITION_REFUSED", lambda: begun.step("b", column)),
        ("CONDITION_REFUSED", lambda: ms.match(long, begun.step("b", "d + small.d > 1"))),
        ("CONDITION_REFUSED", lambda: ms.match(long, begun.step("b", "d - 1 > small.d"))),
        ("PATTERN_REFUSED", lambda: ms.absent(rows, begun)),
        ("PATTERN_REFUSED", lambda: ms.match(rows, begun.step("kind", "amount > 1"))),
        ("PATTERN_REFUSED", lambda: ms.match(rows, begun, after_match="skip")),
        ("PATTERN_COLUMN", lambda: ms.match(rows.drop("card"), begun)),
        *(
            ("PATTERN_COLUMN", lambda name=name: ms.match(rows, tied_by(name)))
            for name in ("nope", "amount", "price", "m", "place")
        ),
        ("PATTERN_TIME", lambda: ms.match(twice, begun)),
        ("PATTERN_TIME", lambda: ms.match(rows.drop("at"), begun)),
        ("SELECT_REFUSED", lambda: ms.match(rows, begun, select="sum(small.amount)")),
        ("SELECT_REFUSED", lambda: ms.match(rows, begun, select="small.nope")),
        ("SELECT_REFUSED", lambda: ms.match(rows, begun, select="*")),
        ("SELECT_REFUSED", lambda: ms.match(rows, begun, select="card, *")),
        ("SELECT_REFUSED", lambda: ms.match(rows, both, select="small.n, big.N")),
        ("SELECT_REFUSED", lambda: ms.match(rows, both, select="small.*, big.*")),
        ("PATTERN_REFUSED", lambda: ms.match(rows, begun.step("ended", "n = 1"))),
        ("PATTERN_REFUSED", lambda: ms.match(rows, begun.step("Began", "n = 1"))),
        ("PATTERN_REFUSED", lambda: ms.match(rows, begun.step("KIND", "n = 1"))),
        ("PATTERN_REFUSED", lambda: begun.step("Small", "n = 1")),
        ("PATTERN_COLUMN", lambda: ms.match(rows.withColumnRenamed("n", "ended"), by_end)),
        ("SELECT_REFUSED", lambda: ms.match(rows, begun, select="card FROM x")),
        ("SELECT_REFUSED", lambda: ms.absent(rows, fraud, select="big.amount")),
        (
            "PATTERN_UNBOUNDED",
            lambda: ms.match(spark.readStream.format("rate").load(), of_rate),
        ),
    ]
    of_rate = ms.pattern(key="value", within="1 hour").step("one", "value > 0")

    for code, look in faults:
        with raises(code) as caught:
            look()
        assert caught.value.at is not None
        assert caught.value.at.file.endswith("test_match.py"), caught.value


def test_random_patterns_match_in_spark_as_in_the_automaton(spark: SparkSession) -> None:
    """What Spark judges alone, filters and groups changes nothing."""
    checked = 0
    for seed in range(100):
        dice = random.Random(seed)
        spec = spec_of(dice)
        streams = tied(spark, {f"k{n}": rows_of(dice) for n in range(20)})
        wanted = {
            (key, one[0][1]["at"], *sorted(str(row["w"]) for _, row in one))
            for key, rows in streams.items()
            for one in Trial(spec, rows).matches()
        }
        if len(wanted) < 10 or len(spec.steps) < 3:
            continue
        frame = frame_of(spark, streams, dice)
        trial = Trial(spec, [])
        found = ms.match(frame, trial.pattern, after_match=spec.after_match)
        names = trial.pattern.names
        rows = found.selectExpr("k", "unix_micros(began) AS began", *names).collect()
        assert {(row.k, row.began, *_values(row, names)) for row in rows} == wanted, spec
        checked += 1
        if checked == 3:
            return

    pytest.fail("too few patterns have matches")


def test_rows_at_the_same_instant_follow_tie_by_as_in_the_brute_force_search(
    spark: SparkSession,
) -> None:
    dice = random.Random(8)
    streams = {f"k{n}": at_few_instants(dice) for n in range(200)}
    frame = frame_of(spark, streams, dice, "s STRING", "n BIGINT")
    checked, differing = 0, 0
    for seed in range(100):
        spec = spec_of(random.Random(seed))
        wanted, by_n = (
            {
                (key, *(rows[row]["n"] for row, _, _ in taken))
                for key, stream in streams.items()
                for rows in [sorted(stream, key=order)]
                for taken in Brute(spec, rows).matches()
            }
            for order in (by_w_s_and_n, by_n_alone)
        )
        if len(wanted) < 100 or len(spec.steps) < 2:
            continue
        pattern = replace(pattern_of(spec), tie_by=("w", "s", "n"))
        found = ms.match(frame, pattern, after_match=spec.after_match).collect()
        taken = {
            (row.k, *sorted(r.n for s in pattern.names for r in _listed(row[s]))) for row in found
        }
        assert taken == {(key, *sorted(ns)) for key, *ns in wanted}, spec
        checked, differing = checked + 1, differing + (wanted != by_n)
        if checked == 4:
            break

    assert (checked, differing) == (4, 4)


def tied_by(name: str) -> Any:
    pattern = ms.pattern(key="card", within="1 hour", tie_by=name)
    return pattern.step("small", "amount < 1")


def at_few_instants(dice: random.Random) -> list[dict[str, Any]]:
    texts = (None, "", "\0", "\0\1", "\1", "a", "a\0", "ab", "Z", "ä", "€", "𝄞")
    numbers = dice.sample((-(2**63), -17, -1, 0, 1, 9, 10, 2**40, 2**63 - 1), 6)
    return [
        {
            "at": dice.choice((0, 1_000_000, 1_000_001)),
            "v": dice.randrange(3),
            "w": dice.choice((None, 1, 2)),
            "s": dice.choice(texts),
            "n": n,
        }
        for n in numbers
    ]


def by_w_s_and_n(row: dict[str, Any]) -> Any:
    w, s = row["w"], row["s"]
    return row["at"], w is not None, w or 0, s is not None, (s or "").encode(), row["n"]


def by_n_alone(row: dict[str, Any]) -> Any:
    return row["at"], row["n"]


def frame_of(spark: SparkSession, streams: Streams, dice: random.Random, *more: str) -> DataFrame:
    columns = ("v INT", "w INT", *more)
    names = [column.split()[0] for column in columns]
    data = [(k, r["at"], *(r[n] for n in names)) for k, rows in streams.items() for r in rows]
    dice.shuffle(data)
    frame = spark.createDataFrame(data, ", ".join(("k STRING", "us BIGINT", *columns)))
    return frame.selectExpr("k", "timestamp_micros(us) AS at", *names)


def tied(spark: SparkSession, streams: Streams) -> Streams:
    """Streams in the order that is documented: by xxhash64 of the row as JSON."""
    stamp = "map('timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX')"
    order = f"xxhash64(to_json(struct(k, at, v, w), {stamp})) AS tie"
    found = frame_of(spark, streams, random.Random(0)).selectExpr(
        "k", "unix_micros(at) AS at", "v", "w", order
    )
    rows = [row.asDict() for row in found.collect()]
    return {
        k: in_order([{n: v for n, v in r.items() if n != "k"} for r in rows if r["k"] == k])
        for k in streams
    }


def test_a_key_may_have_any_name(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("ann", NOON, 1)], "`card.id` STRING, at TIMESTAMP, `n``m` INT")
    one = ms.pattern(key=["card.id", "n`m"], within="1 hour").step("one", "`card.id` = 'ann'")

    [whole] = ms.match(rows, one).collect()
    [chosen] = ms.match(rows, one, select="`card.id` AS card, one.`n``m` AS n").collect()

    assert (tuple(whole)[:2], tuple(chosen)) == (("ann", 1), ("ann", 1))


def test_a_column_that_spark_calls_the_corrupt_record_comes_back_as_it_was(
    spark: SparkSession,
) -> None:
    rows = spark.createDataFrame(
        [("ann", NOON, "x")], "k STRING, at TIMESTAMP, _corrupt_record STRING"
    )
    one = ms.pattern(key="_corrupt_record", within="1 hour").step("one", "k = 'ann'")
    reference = rows.withColumnRenamed("at", "since")

    found = [
        ms.match(rows, one, select="_corrupt_record AS x, one._corrupt_record AS y"),
        ms.dedup(rows, "k", within="1 hour").selectExpr("_corrupt_record AS x", "'x' AS y"),
        ms.join_as_of(rows, reference, on="k").selectExpr(
            "_corrupt_record", "_corrupt_record_right"
        ),
    ]

    assert [tuple(row) for one in found for row in one.collect()] == [("x", "x")] * 3


def test_whether_rows_at_the_same_instant_match_does_not_depend_on_what_is_selected(
    spark: SparkSession,
) -> None:
    pattern = ms.pattern(key="card", within="1 hour").step("one", "kind = 'a'")
    pattern = pattern.step("other", "kind = 'b'")
    columns = "card STRING, at TIMESTAMP, kind STRING, n INT, m INT, v VARIANT, i INTERVAL DAY"
    data = [(f"c{n // 2}", NOON, "ab"[n % 2], -(n % 2), n % 2, f"{n}", None) for n in range(40)]
    rows = spark.createDataFrame(data, columns.replace("VARIANT", "STRING"))
    rows = rows.withColumn("v", F.parse_json("v"))
    selections = ["card", "card, one.n", "card, one.m AS n, other.kind", "card, one.kind AS n"]

    found = [
        sorted(row.card for row in ms.match(rows, pattern, select=select).collect())
        for select in selections
    ]

    assert [len(one) for one in found] == [len(found[0])] * len(found)
    assert all(other == found[0] for other in found)
    assert 0 < len(found[0]) < 20


def _values(row: Any, names: tuple[str, ...]) -> list[str]:
    taken = [r for name in names for r in _listed(row[name])]
    return sorted(str(r.w) for r in taken)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def card_app() -> ms.App:
    app = ms.App("cards")
    calm = ms.pattern(key=["card", "country"], within="20 seconds").step(
        "calm", "amount < 5", times=(2, None), strict=True
    )

    @app.source(event_time="at", watermark="10 seconds")
    def tx() -> ms.Memory:
        return ms.Memory(TX)

    @app.table()
    def frauds(tx: DataFrame) -> DataFrame:
        return ms.match(tx, fraud, select="card, small.at AS since, sum(probe.amount) AS probed")

    @app.table()
    def calms(tx: DataFrame) -> DataFrame:
        return ms.match(ms.dedup(tx, ["card", "at", "amount"]), calm, after_match="skip_to_next")

    @app.table()
    def missed(tx: DataFrame) -> DataFrame:
        return ms.absent(tx, fraud)

    return app


def test_a_stream_returns_what_is_final_in_event_order_across_restarts(
    stream: Callable[..., Script],
) -> None:
    def sent(clock: str, amount: float, country: str = "de", card: str = "ann") -> None:
        s.send("tx", card=card, at=clock, amount=amount, country=country, kind="buy")

    with stream(card_app()) as s:
        sent("12:00:03", 600, "fr")
        sent("12:00:02", 2)
        sent("12:00:02", 2, card="bob")
        s.batch()
        s.crash()
        s.restart()
        sent("12:00:01", 0.5)
        s.batch()
        assert s.table("frauds").rows() == []

        sent("12:00:13.001", 7, card="eve")
        s.batch()
        s.assert_consistent()
        assert s.table("frauds").rows("card", "probed") == [("ann", 2.0)]
        assert s.table("calms").rows("card") == []

        sent("12:20:00", 0.1)
        s.batch()
        assert s.table("calms").rows("card", "country") == [("ann", "de")]
        assert s.table("missed").rows("card") == []

        sent("12:40:00", 7, card="eve")
        s.batch()
        assert s.table("missed").rows("card") == [("ann",)]
        s.assert_consistent()


@pytest.mark.long
def test_patterns_are_prefix_consistent(spark: SparkSession) -> None:
    amounts = (0.5, 2, 3, 600, 0.3, 4, 700, 1, 0.1, 900)
    cast = [
        {
            "card": "ab"[n // 7],
            "at": f"12:00:{n * 3:02d}",
            "amount": amount,
            "country": ("de", "fr")[n % 2],
            "kind": "buy",
        }
        for n, amount in enumerate(amounts)
    ]

    assert_prefix_consistent(card_app(), cast, runs=3, spark=spark)
