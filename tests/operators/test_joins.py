from __future__ import annotations

import random
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pyspark.sql import functions as F
from tests.faults import raises
from tests.operators.apps import CLICKED, HOWS, SHOWN, ending, joined, rows_of, two_sources, waiting
from tests.operators.trial import hold

import millstream as ms
from millstream.errors import Location
from millstream.lake.frontier import moment
from millstream.lake.log import facts_of
from millstream.operators.build_context import BuildContext, BuildOptions, calling, of_watermark
from millstream.operators.joins.latest import AsOf
from millstream.operators.joins.sides import Sides
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from tests.operators.apps import How

    from millstream.testing import Script

pytestmark = pytest.mark.spark


def test_every_operator_gives_in_a_batch_what_duckdb_does(spark: SparkSession) -> None:
    assert hold(spark, random.Random(7), 150) > 500


@pytest.mark.long
def test_operators_are_prefix_consistent(spark: SparkSession) -> None:
    assert_prefix_consistent(waiting(), rows_of(random.Random(1), 12), runs=3, spark=spark)


@pytest.mark.long
def test_joins_until_an_end_of_their_own_and_without_end_are_prefix_consistent(
    spark: SparkSession,
) -> None:
    rows = rows_of(random.Random(2), 16)
    assert_prefix_consistent(ending("left", "full"), rows, runs=3, spark=spark)


def test_a_row_without_a_partner_comes_out_when_its_own_end_has_passed(
    stream: Callable[..., Script], home: Path
) -> None:
    with stream(ending("left"), home=home) as s:
        s.send("shown", ad="x", at="12:00:00", site="a")
        s.send("shown", ad="y", at="12:00:00", site="b")
        s.send("clicked", ad="z", at="12:00:00", n=1)
        s.batch()
        s.send("clicked", ad="x", at="12:00:10", n=2)
        s.send("clicked", ad="z", at="12:01:00", n=3)
        s.send("shown", ad="z", at="12:01:00", site="a")
        s.batch()
        s.crash()
        s.restart()
        s.batch()

        assert s.table("left_until").rows("ad", "n") == [("x", 2), ("y", None), ("z", 3)]
        assert s.table("pairs").rows("ad", "n") == [("x", 2), ("z", 1), ("z", 3)]
        frontiers = {t: facts_of(home / "tables" / t).frontier for t in ("capped", "pairs")}
        assert frontiers["capped"] is not None
        assert frontiers["pairs"] is None
        s.assert_consistent()


def test_a_join_is_complete_to_the_watermark_less_its_bound(
    stream: Callable[..., Script], home: Path
) -> None:
    with stream(joined("left", within="10 seconds"), home=home) as s:
        s.send("shown", ad="alone", at="12:01:19.997", site="a")
        s.send("shown", ad="waits", at="12:01:20", site="a")
        s.send("clicked", ad="other", at="12:01:20", n=1)
        s.batch()
        s.send("shown", ad="new", at="12:02:00", site="a")
        s.send("clicked", ad="new", at="12:02:00", n=2)
        s.batch()

        complete_to = moment(facts_of(home / "tables" / "left_join").frontier)
        assert complete_to == datetime(2026, 1, 1, 12, 1, 19, 998_000, tzinfo=UTC)
        assert s.table("left_join").rows("ad") == [("alone",), ("new",)]


def test_a_null_key_equals_nothing_in_a_stream_of_any_join(stream: Callable[..., Script]) -> None:
    app = two_sources("nulls")

    def declare(how: How) -> None:
        @app.table(name=f"{how}_join")
        def answer(shown: DataFrame, clicked: DataFrame) -> DataFrame:
            keyed = shown.withColumn("n", F.length("site"))
            return ms.join_within(keyed, clicked, on=["ad", "n"], within="10 seconds", how=how)

    for how in HOWS:
        declare(how)
    with stream(app) as s:
        for ad in ("a", None):
            s.send("shown", ad=ad, at="12:00:00", site="a")
            s.send("clicked", ad=ad, at="12:00:01", n=1)
        s.batch()
        s.assert_consistent()
        s.send("shown", ad="later", at="12:10:00", site="a")
        s.send("clicked", ad="later", at="12:10:00", n=2)
        s.batch()
        s.assert_consistent()

        without_key = {how: len(_nulls(s, f"{how}_join")) for how in HOWS}
    assert without_key == {"inner": 0, "left": 1, "right": 1, "full": 2, "semi": 0}


def _nulls(script: Script, table: str) -> list[tuple[Any, ...]]:
    return [row for row in script.table(table).rows("ad") if row == (None,)]


def test_a_join_keeps_columns_whatever_they_are_called(spark: SparkSession) -> None:
    left = spark.sql("SELECT 'a' AS ad, TIMESTAMP '2026-01-01' AS at, 1 AS _left, 2 AS _THERE")
    right = spark.sql("SELECT 'a' AS ad, TIMESTAMP '2026-01-01' AS at, 3 AS _right")

    for frontier in (None, 0, 10**15):
        with complete_to(frontier) if frontier is not None else nullcontext():
            joined = ms.join_within(left, right, on="ad", within="1 hour", how="full")
        [row] = joined.select("_left", "_THERE", "_right").collect()
        assert tuple(row) == (1, 2, 3)


def complete_to(watermark_ms: int) -> AbstractContextManager[None]:
    return calling(BuildContext(options=BuildOptions(complete_us=of_watermark(watermark_ms))))


@pytest.mark.parametrize(("how", "kept"), [("left", 2), ("inner", 1)])
def test_an_event_without_event_time_has_no_reference_row_in_order_and_at_once(
    spark: SparkSession, how: Literal["left", "inner"], kept: int
) -> None:
    times = "VALUES (TIMESTAMP '2026-01-01'), (NULL) AS times(at)"
    events = spark.sql(f"SELECT 'a' AS ad, at FROM {times}")
    reference = spark.sql("SELECT 'a' AS ad, TIMESTAMP '2025-01-01' AS since, 1 AS n")
    sides = Sides.of(events, reference, "ad", None, call="ms.join_as_of", at=Location("app.py", 1))

    at_once = AsOf(sides, None, is_inner=how == "inner").at_once()
    in_order = ms.join_as_of(events, reference, on="ad", how=how)
    with complete_to(0):
        waiting = ms.join_as_of(events, reference, on="ad", how=how)

    by_time = in_order.orderBy("at").collect()
    assert by_time == at_once.orderBy("at").collect()
    assert [(row.at is None, row.n) for row in by_time] == [(True, None), (False, 1)][-kept:]
    assert [row.at for row in waiting.collect()] == [None] * (kept - 1)


def test_what_does_not_fit_is_refused_with_the_line_of_the_call(spark: SparkSession) -> None:
    left, right = spark.createDataFrame([], SHOWN), spark.createDataFrame([], CLICKED)
    rate = spark.readStream.format("rate").load().selectExpr("timestamp AS at", "'a' AS ad")
    two = left.withColumn("booked", F.col("at"))
    hour: dict[str, Any] = {"on": "ad", "within": "1 hour"}
    faults: list[tuple[str, Callable[[], DataFrame]]] = [
        ("OPERATOR_OPTION", lambda: ms.join_within(left, right, on="ad")),
        ("OPERATOR_OPTION", lambda: ms.join_within(left, right, on="ad", within="soon")),
        *(
            ("OPERATOR_OPTION", lambda w=within: ms.join_within(left, right, on="ad", within=w))
            for within in (("1 hour",), ("1 hour", 5), ("1 s", "1 s", "1 s"), timedelta(1), 3600)
        ),
        *(
            ("OPERATOR_OPTION", lambda t=times: ms.join_within(left, right, **hour, event_time=t))
            for times in (("at",), ("at", "at", "at"), 1)
        ),
        ("OPERATOR_OPTION", lambda: ms.join_as_of(left, right, on="ad", event_time=("at",))),  # type: ignore[arg-type]
        ("OPERATOR_OPTION", lambda: ms.join_as_of(left, right, on="ad", within=timedelta(1))),  # type: ignore[arg-type]
        ("OPERATOR_OPTION", lambda: ms.join_within(left, right, on=[], within="1 hour")),
        ("OPERATOR_OPTION", lambda: ms.join_within(left, right, **hour, how="outer")),  # type: ignore[arg-type]
        ("OPERATOR_OPTION", lambda: ms.join_within(left, right, **hour, unbounded=True)),
        *(
            ("OPERATOR_OPTION", lambda s=said: ms.join_within(two, right, on="ad", **s))
            for said in (
                {"unbounded": True, "until": "booked"},
                {"unbounded": True, "how": "left"},
                {"until": "booked", "within": ("1 s", "1 s")},
            )
        ),
        ("OPERATOR_COLUMN", lambda: ms.join_within(two, right, on="ad", until="site")),
        ("OPERATOR_COLUMN", lambda: ms.join_within(left, right, on="adid", within="1 hour")),
        ("OPERATOR_COLUMN", lambda: ms.join_within(left, right, **hour, event_time="site")),
        (
            "OPERATOR_COLUMN",
            lambda: ms.join_within(left.withColumn("at_right", F.lit(1)), right, **hour),
        ),
        ("EVENT_TIME_UNKNOWN", lambda: ms.join_within(two, right, **hour)),
        ("EVENT_TIME_UNKNOWN", lambda: ms.join_within(left, right.drop("at"), **hour)),
        ("JOIN_KEY_TYPES", lambda: ms.join_within(left, right.withColumn("ad", F.lit(1)), **hour)),
        ("JOIN_SIDES", lambda: ms.join_within(rate, right, **hour)),
        ("NO_WATERMARK", lambda: ms.join_within(rate, rate, **hour)),
        ("NO_WATERMARK", lambda: ms.join_as_of(rate, rate, on="ad")),
        ("NO_WATERMARK", lambda: ms.dedup(rate, "ad", within="1 hour")),
        ("JOIN_SIDES", lambda: ms.join_as_of(left, rate, on="ad")),
        ("OPERATOR_OPTION", lambda: ms.join_as_of(left, right, on="ad", how="full")),  # type: ignore[arg-type]
        (
            "OPERATOR_COLUMN",
            lambda: ms.join_as_of(left, right.withColumn("v", F.parse_json(F.lit("1"))), on="ad"),
        ),
        ("OPERATOR_COLUMN", lambda: ms.dedup(left, ["ad", "who"])),
        ("OPERATOR_OPTION", lambda: ms.dedup(left, [])),
        ("OPERATOR_OPTION", lambda: ms.dedup(left, "ad", within="a while")),
        ("OPERATOR_OPTION", lambda: ms.top_k(left, by="at", k=0)),
        ("OPERATOR_OPTION", lambda: ms.top_k(left, by="at", k=1, ties="some")),  # type: ignore[arg-type]
        ("OPERATOR_COLUMN", lambda: ms.top_k(left, by="when", k=1)),
        (
            "OPERATOR_COLUMN",
            lambda: ms.top_k(left.withColumn("m", F.create_map("ad", "ad")), by="at", k=1),
        ),
        (
            "OPERATOR_COLUMN",
            lambda: ms.top_k(left.selectExpr("at", "array(map(ad, ad)) AS m"), by="at", k=1),
        ),
        ("OPERATOR_OPTION", lambda: ms.salted(left, "ad", {"all": "collect_list(at)"})),
        ("OPERATOR_OPTION", lambda: ms.salted(left, "ad", {"n": "count(x)"})),
        ("OPERATOR_OPTION", lambda: ms.salted(left, "ad", {"n": "count(*)"}, salts=0)),
        ("OPERATOR_COLUMN", lambda: ms.salted(left, "a", {"n": "count(*)"})),
        ("OPERATOR_OPTION", lambda: ms.reference("nowhere")),
        ("OPERATOR_OPTION", lambda: ms.reference(lambda _: left)),
        ("OPERATOR_OPTION", lambda: ms.reference(lambda _: left, every=10)),  # type: ignore[arg-type]
        ("OPERATOR_OPTION", lambda: ms.reference(left)),  # type: ignore[arg-type]
        ("OPERATOR_OPTION", lambda: ms.reference("s3://bucket/products", format="csv")),
        ("REFERENCE_UNREADABLE", lambda: ms.reference("nowhere", format="csv")),
        ("REFERENCE_UNREADABLE", lambda: ms.reference(Path("nowhere"), format="csv")),
    ]

    for code, call in faults:
        with raises(code) as caught:
            call()
        assert caught.value.at is not None
        assert caught.value.at.file.endswith("test_joins.py"), caught.value
