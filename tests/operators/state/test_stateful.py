"""Keyed state in DataFrames: in a batch and in a stream, with bad rows, restarts and changes."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.faults import raises
from tests.graphs import table
from tests.operators.state.apps import CAST, changed_state, quiet_app, visits_app
from tests.operators.state.chance import COLUMNS, counted, visits

import millstream as ms
from millstream.build.states import keep_states, read_state
from millstream.lake.frontier import moment
from millstream.lake.home import Home
from millstream.lake.log import facts_of
from millstream.operators.state import buckets
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.operators.state.stateful import Stateful
    from millstream.testing import Script

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@ms.stateful(
    key=["user", "place"],
    state="seen ARRAY<STRING>, by_kind MAP<STRING, BIGINT>, last STRUCT<price: DECIMAL(10,2)>",
    emits="user STRING, x DOUBLE, price DECIMAL(10,2), seen ARRAY<STRING>, "
    "by_kind MAP<STRING, BIGINT>, raw BINARY, day DATE, at TIMESTAMP",
    order="event",
)
def rich(key: Any, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Iterator[Any]:
    """Every kind of value, in and out."""
    for row in rows:
        price = row.price or (state.last.price if state.last else None)
        state.last = {"price": price}
        state.seen.append(row.kind)
        state.by_kind[row.kind] = state.by_kind.get(row.kind, 0) + row.n
        yield key[0], row.x, price, state.seen, state.by_kind, row.raw, row.day, row.at


def test_values_of_every_kind_go_in_and_come_out_as_they_are(spark: SparkSession) -> None:
    schema = (
        "user STRING, place STRING, kind STRING, n BIGINT, x DOUBLE, price DECIMAL(10,2), "
        "raw BINARY, day DATE, at TIMESTAMP"
    )
    at = NOON + timedelta(microseconds=1)
    rows = [
        ("ann", None, "b", 2**62, float("nan"), None, None, None, at + timedelta(seconds=1)),
        ("ann", None, "a", 1, float("-inf"), Decimal("12345678.90"), b"\0\xff", NOON.date(), at),
    ]

    first, second = sorted(rich(spark.createDataFrame(rows, schema)).collect(), key=lambda r: r.at)

    assert tuple(first)[:-1] == (
        "ann", float("-inf"), Decimal("12345678.90"), ["a"], {"a": 1}, b"\0\xff", NOON.date(),
    )  # fmt: skip
    assert first.at.astimezone(UTC) == at
    assert second.x != second.x
    assert tuple(second)[2:7] == (
        Decimal("12345678.90"), ["a", "b"], {"a": 1, "b": 2**62}, None, None,
    )  # fmt: skip


@ms.stateful(
    key="user",
    state="n BIGINT",
    emits="user STRING, small SMALLINT, large BIGINT, is_even BOOLEAN",
    order="arrival",
)
def plain(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Iterator[Any]:
    """Values that reach Spark without text: some of them null, and large beside null."""
    for row in rows:
        yield user, None if row.n else -(2**15), row.n and 2**62 + row.n, row.n and row.n % 2 == 0


def test_plain_values_come_out_as_they_are_in_a_batch_and_in_a_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    given = [("ann", 1), ("ann", 2), (None, None)]
    rows = spark.createDataFrame(given, "user STRING, n BIGINT")
    rows.write.parquet(str(tmp_path / "rows"))
    wanted = [
        (None, -(2**15), None, None),
        ("ann", None, 2**62 + 1, False),
        ("ann", None, 2**62 + 2, True),
    ]

    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
    writer = plain(stream).writeStream.format("memory").queryName("plain")
    writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()

    for answers in (plain(rows), spark.table("plain")):
        assert sorted(map(tuple, answers.collect()), key=str) == sorted(wanted, key=str)


def test_what_does_not_fit_is_refused_with_the_line_of_the_function(spark: SparkSession) -> None:
    rows = spark.createDataFrame([], COLUMNS)
    rate = spark.readStream.format("rate").load()

    def of_rate(**options: Any) -> Stateful:
        @ms.stateful(key="value", state="n BIGINT", emits="n BIGINT", **options)
        def n(value: int, rows: Any, state: Any, timer: ms.Timer) -> None: ...

        return n

    faults: list[tuple[str, Callable[[], DataFrame]]] = [
        ("STATEFUL_COLUMN", lambda: visits(rows.drop("user"))),
        ("STATEFUL_COLUMN", lambda: visits(rows.selectExpr("*", "1 AS `a b`"))),
        ("STATEFUL_COLUMN", lambda: visits(rows.selectExpr("*", "map(1, 2) AS m"))),
        ("STATEFUL_TIME", lambda: visits(rows.selectExpr("*", "at AS later"))),
        ("STATEFUL_TIME", lambda: visits(rows.drop("at"))),
        ("STATEFUL_UNBOUNDED", lambda: of_rate()(rate)),
        ("STATEFUL_UNBOUNDED", lambda: of_rate(order="arrival", ttl="1 hour")(rate)),
        ("STATEFUL_REFUSED", lambda: of_rate(initial=lambda spark: 1, order="arrival")(rate)),
        ("STATEFUL_COLUMN", lambda: of_rate(initial=lambda s: s.range(1), order="arrival")(rate)),
    ]

    for code, call in faults:
        with raises(code) as caught:
            call()
        assert caught.value.at is not None, code
        assert "state" in caught.value.at.file, caught.value
    assert of_rate(order="arrival")(rate).isStreaming


def test_the_state_of_every_call_of_a_function_is_read(
    stream: Callable[..., Script], spark: SparkSession, home: Path
) -> None:
    app = ms.App("twice")

    @ms.stateful(key="user", state="n BIGINT", emits="user STRING, n BIGINT", ttl="1 day")
    def seen(user: str, rows: Sequence[Any], state: Any, timer: Any) -> Iterator[tuple[str, int]]:
        state.n = (state.n or 0) + len(rows)
        yield user, state.n

    @app.source(event_time="at", watermark="1 second")
    def hits() -> ms.Memory:
        return ms.Memory("user STRING, at TIMESTAMP")

    @app.table()
    def both(hits: DataFrame) -> DataFrame:
        return seen(hits.where("user = 'ann'")).union(seen(hits.where("user = 'bob'")))

    with stream(app, home=home) as s:
        for clock, user in (("12:00:00", "ann"), ("12:00:01", "bob"), ("12:01:00", "bob")):
            s.send("hits", user=user, at=clock)
            s.batch()
        s.batch()

        rows = read_state(spark, Home.at(home), "seen").select("user", "n").collect()
        assert sorted(map(tuple, rows)) == [("ann", 1), ("bob", 1)]


def test_keys_that_spark_takes_as_equal_are_one_key(spark: SparkSession) -> None:
    @ms.stateful(key="x", state="n BIGINT", emits="x DOUBLE, n BIGINT", order="arrival")
    def many(x: float, rows: Sequence[Any], state: Any, timer: Any) -> Iterator[tuple[float, int]]:
        yield x, len(rows)

    rows = spark.createDataFrame([(0.0,), (-0.0,), (1.5,), (float("nan"),)] * 2, "x DOUBLE")

    grouped = {(str(row.x), row["count"]) for row in rows.groupBy("x").count().collect()}
    assert {(str(row.x), row.n) for row in many(rows).collect()} == grouped
    assert ("0.0", 4) in grouped


def test_buckets_are_spread_evenly_over_tasks(spark: SparkSession) -> None:
    numbers = spark.createDataFrame([(n,) for n in buckets._BUCKETS], "n INT")

    places = numbers.select(F.pmod(F.hash("n"), F.lit(32)).alias("place")).collect()

    assert {row.place for row in places} == {*range(32)}


def test_the_keys_of_a_bucket_are_kept_in_head_and_parts(
    stream: Callable[..., Script],
    spark: SparkSession,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for limit, value in (("_BUCKETS", (0,)), ("RECENT", 150), ("LARGEST", 60)):
        monkeypatch.setattr(buckets, limit, value)
    app, dice, wanted = ms.App("counts"), random.Random(1), Counter[str]()
    users = [f"user {n}" for n in range(150)]
    app.source(name="hits")(lambda: ms.Memory("user STRING"))

    @ms.stateful(key="user", state="n BIGINT", emits="user STRING, n BIGINT", order="arrival")
    def count(user: str, rows: Sequence[Any], state: Any, timer: Any) -> Iterator[tuple[str, int]]:
        state.n = (state.n or 0) + len(rows)
        if state.n == 5:
            state.n = None
        yield user, state.n or 5

    @app.table()
    def counts(hits: DataFrame) -> DataFrame:
        return count(hits)

    with stream(app, home=home) as s:
        for batch, size in enumerate((2, 9, 1, 300, 30, 12, 2, 70, 20, 1, 40, 2)):
            for user in dice.choices(users, k=size):
                s.send("hits", user=user)
                wanted[user] += 1
            s.batch()
            wanted = Counter({user: n for user, n in wanted.items() if n != 5})
            if batch % 3 != 2:
                continue
            s.crash()
            s.restart()
            rows = read_state(spark, Home.at(home), "count").select("user", "n").collect()
            assert {row.user: row.n for row in rows} == wanted, batch


def test_a_stream_keeps_state_across_restarts_and_puts_bad_rows_aside(
    stream: Callable[..., Script], home: Path
) -> None:
    def hit(clock: str, value: int, user: str = "ann") -> None:
        s.send("hits", user=user, at=clock, value=value)

    with stream(visits_app(), home=home) as s:
        for clock, value in (("12:00:05", 9), ("12:00:01", 13), ("12:00:02", 5)):
            hit(clock, value)
        s.batch()
        s.crash()
        s.restart()
        assert s.table("visit").rows() == []

        hit("12:00:02", 1)
        hit("12:00:15.001", 200, "bob")
        s.batch()
        s.assert_consistent()
        frontier = facts_of(home / "tables" / "visit").frontier
        assert str(moment(frontier)) == "2026-01-01 12:00:05+00:00"
        assert s.table("visit").rows("user", "what", "total") == [("ann", "big", 9)]
        assert s.table("count").rows() == [("ann", 11), ("ann", 13), ("ann", 14)]
        [bad] = s.table("visit__quarantine").rows("_rules", "_row", "_raised")
        assert '"value":13' in bad._row
        assert bad._raised.endswith("ValueError: unlucky\n")
        assert "chance.py" in bad._raised

        hit("12:01:00", 1, "eve")
        s.crash(after="quarantine_commit", query="visit")
        s.restart()
        s.batch()
        s.assert_consistent()
        assert s.table("visit").rows("user", "what", "total") == [
            ("ann", "big", 9), ("ann", "end", 15), ("ann", "nudge", None), ("bob", "nudge", None),
        ]  # fmt: skip
        asides = s.table("visit__quarantine").rows("user", "what", "total", "_raised")
        assert [(a.user, a.what, a.total) for a in asides] == [
            ("bob", "big", 200), ("bob", "end", 200), (None, None, None),
        ]  # fmt: skip

        with raises("STATE_CHANGED", match=r"'n' of the state was BIGINT and is INT.*'m'"):
            s.upgrade_to(visits_app(changed_state()))


@pytest.mark.long
def test_keyed_state_is_prefix_consistent(spark: SparkSession) -> None:
    assert_prefix_consistent(visits_app(counted), CAST, runs=3, spark=spark)


def test_a_run_that_is_to_end_calls_what_is_due_by_the_clock_and_ends(
    stream: Callable[..., Script],
) -> None:
    with stream(quiet_app()) as script:
        script.send("hits", user="ann", at="12:00:00", value=1)
        script.run_once()
        before = script.table("left").rows()
        script.advance("2 minutes")
        script.run_once()
        script.send("hits", user="bob", at="12:00:00", value=1)
        script.run_once()
        script.advance("2 minutes")
        script.run_once()

        assert before == []
        assert script.table("left").rows() == [("ann", 1), ("bob", 1)]


def test_state_that_an_earlier_version_laid_out_otherwise_is_refused(home: Path) -> None:
    place, query = Home.at(home), table("visit", "hits")
    described = place.checkpoint("visit") / "state" / "0" / "_metadata" / "v2" / "0"
    described.parent.mkdir(parents=True)
    text = r'v2 {"operatorPropertiesJson":"[{\"stateName\":\"NAME\"}]"}'
    for name in ("kept_resumed", "keys", "dues_of_theirs"):
        described.write_text(text.replace("NAME", name))
        keep_states((), query, place)
    described.write_text(text.replace("NAME", "dues"))

    with raises("STATE_CHANGED", match="an earlier Millstream wrote it"):
        keep_states((), query, place)
