"""Operators with state on a checkpoint that another version of them has written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import raises
from tests.graphs import table

import millstream as ms
from millstream.build.states import keep_states
from millstream.lake.home import Home
from millstream.operators.build_context import BuildContext, calling

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing import Script

pytestmark = pytest.mark.spark

OFFSETS = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}\n0\n'


def app_of(build: Callable[[DataFrame, DataFrame], DataFrame]) -> ms.App:
    app = ms.App("kept")

    @app.source(event_time="at", watermark="1 second")
    def seen() -> ms.Memory:
        return ms.Memory("k STRING, at TIMESTAMP, kind STRING, n INT")

    @app.source(event_time="at", watermark="1 second")
    def known() -> ms.Memory:
        return ms.Memory("k STRING, at TIMESTAMP, name STRING")

    @app.table()
    def reported(seen: DataFrame, known: DataFrame) -> DataFrame:
        return build(seen, known)

    return app


def matched(select: str = "k, c.n", **changed: Any) -> Any:
    said: dict[str, Any] = {
        "within": "10 minutes",
        "c": "kind = 'c'",
        "times": 1,
        "after": "skip_past_last",
    }
    said |= changed
    pattern = ms.pattern(key="k", within=said["within"], tie_by=said.get("tie_by", ()))
    pattern = pattern.step("a", "kind = 'a'")
    if said.get("between"):
        pattern = pattern.step("b", "kind = 'b'")
    pattern = pattern.step("c", said["c"], times=said["times"])
    return lambda seen, _: ms.match(seen, pattern, select=select, after_match=said["after"])


def absent(seen: DataFrame, _: DataFrame) -> DataFrame:
    pattern = ms.pattern(key="k", within="10 minutes").step("a", "kind = 'a'")
    return ms.absent(seen, pattern.step("c", "kind = 'c'"), select="k, a.n")


def twice(within: str = "10 minutes") -> Any:
    one, other = matched(), matched(within=within, c="kind = 'd'")
    return lambda seen, known: one(seen, known).union(other(seen, known))


def once(keys: Any = "k", within: str = "1 minute", more: str = "n AS m") -> Any:
    return lambda seen, _: ms.dedup(seen.selectExpr("*", more), keys, within=within)


def as_of(within: str | None = None, name: str = "name") -> Any:
    return lambda seen, known: ms.join_as_of(
        seen, known.selectExpr("k", "at", name), on="k", within=within
    )


def near(within: str = "1 minute", how: Any = "left") -> Any:
    return lambda seen, known: ms.join_within(seen, known, on="k", within=within, how=how)


CHANGES: dict[str, tuple[Any, Any, str]] = {
    "a step more": (matched(), matched(between=True), r"step 2 was c \(kind = 'c'\) and is b"),
    "a condition": (matched(), matched(c="kind = 'z'"), "step 2 was c .* and is c .*'z'"),
    "times": (matched(), matched(times=(1, 3)), "times 1 to 3"),
    "a time": (matched(), matched(within="5 minutes"), "within was 10 minutes and is 5 minutes"),
    "a comparison": (matched(), matched(c="kind = 'c' AND n > a.n"), "it compares was none and is"),
    "ties": (matched(), matched(tie_by="n"), "it has tie_by anew: n int"),
    "a policy": (matched(), matched(after="skip_to_last(c)"), r"after_match .*skip_to_last\(c\)"),
    "columns": (matched(), matched("k, a.kind AS n"), "columns it keeps was n int and is kind"),
    "absence": (matched(), absent, "'ms.match' was in its place"),
    "the second of two": (twice(), twice("1 minute"), "within was 10 minutes and is 1 minute"),
    "one of two": (twice(), matched(), "it is called no longer"),
    "keys": (once(), once(["k", "n"]), "keys was k string and is k string, n int"),
    "a while": (once(), once("k", "2 minutes"), "within was 1 minute and is 2 minutes"),
    "a type": (
        once(more="n AS m"),
        once(more="kind AS m"),
        "'m' of the rows was int and is string",
    ),
    "a bound": (near(), near("2 minutes"), "within was .* and 1 minute and is .* and 2 minutes"),
    "a kind of join": (near(), near(how="right"), "how was left and is right"),
    "an age": (as_of(), as_of("1 minute"), "within was any age and is 1 minute"),
    "reference": (as_of(), as_of(None, "length(name) AS name"), "'name' of the right .* is int"),
}


def kept(spark: SparkSession, build: Any) -> list[Any]:
    """What operators report of their state when a query is built."""
    rate = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    seen = rate.selectExpr("'x' AS k", "timestamp AS at", "'a' AS kind", "1 AS n")
    known = rate.selectExpr("'x' AS k", "timestamp AS at", "'a' AS name")
    context = BuildContext()
    with calling(context):
        build(seen, known)
    return context.notes.states


@pytest.mark.parametrize("change", CHANGES)
def test_an_operator_that_is_declared_otherwise_is_refused_on_its_old_state(
    change: str, spark: SparkSession, home: Path
) -> None:
    before, after, why = CHANGES[change]
    place, query = Home.at(home), table("reported", "seen")
    offsets = place.checkpoint("reported") / "offsets"
    offsets.mkdir(parents=True)
    keep_states(kept(spark, before), query, place)
    (offsets / "0").write_text(OFFSETS)
    keep_states(kept(spark, before), query, place)

    with raises("STATE_CHANGED", match=why):
        keep_states(kept(spark, after), query, place)


def test_rows_that_are_kept_may_have_other_columns_of_which_none_has_another_type(
    spark: SparkSession, home: Path
) -> None:
    place, query = Home.at(home), table("reported", "seen")
    keep_states(kept(spark, once(more="n AS m")), query, place)
    offsets = place.checkpoint("reported") / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text(OFFSETS)

    for more in ("n AS o", "n AS p", "n AS m"):
        keep_states(kept(spark, once(more=more)), query, place)
    for more in ("kind AS m", "kind AS o", "kind AS p"):
        with raises("STATE_CHANGED", match="was int and is string"):
            keep_states(kept(spark, once(more=more)), query, place)


def test_a_run_with_another_pattern_is_refused_before_any_batch(
    stream: Callable[..., Script],
) -> None:
    with stream(app_of(matched())) as s:
        s.send("seen", k="x", at="12:00:00", kind="a", n=1)
        s.batch()

        with raises("STATE_CHANGED", match="step 2 was c") as caught:
            s.upgrade_to(app_of(matched(between=True)))

    assert caught.value.at is not None
    assert Path(caught.value.at.file).name == "test_kept.py"
    assert "give the dataset a new name" in caught.value.fix


def test_operators_go_on_from_their_state_where_names_have_changed_and_columns_come(
    stream: Callable[..., Script],
) -> None:
    def version(select: str, *more: str) -> ms.App:
        # What is deduplicated has no watermark: each operator has a table of its own.
        app = app_of(matched(select))

        @app.table(evolve=True)
        def firsts(seen: DataFrame) -> DataFrame:
            return ms.dedup(seen.selectExpr("*", *more), "k", within="1 minute")

        @app.table()
        def two(seen: DataFrame) -> DataFrame:
            found: DataFrame = twice()(seen, seen)
            return found

        return app

    with stream(version("k, c.n")) as s:
        s.send("seen", k="x", at="12:00:00", kind="a", n=1)
        s.batch()
        s.crash()
        s.restart()
        s.upgrade_to(version("upper(k) AS k, c.n + 1 AS n", "n + 1 AS m"))
        s.send("seen", k="x", at="12:00:20", kind="c", n=3)
        s.batch()
        s.send("seen", k="y", at="12:03:00", kind="z", n=3)
        s.batch()

        assert s.table("reported").rows("k", "n") == [("X", 4)]
        assert s.table("two").rows("k", "n") == [("x", 3)]
        assert s.table("firsts").rows("k", "n", "m") == [("x", 1, None)]
