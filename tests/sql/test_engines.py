from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests import joins
from tests.faults import raises
from tests.tricky import make_tables, queries

from millstream.errors import MillstreamError
from millstream.lake.home import Home
from millstream.sql import query
from millstream.sql.answer import read_rows
from millstream.sql.limits import Limits
from millstream.sql.spark_query import answer, register, translating_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home.at(tmp_path_factory.mktemp("tricky") / "home")
    make_tables(home)
    return home


def plain(value: Any) -> Any:
    """Make values comparable by how they are written: floats to nine digits, moments in UTC."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}") + 0.0
    if isinstance(value, datetime) and value.tzinfo:
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def reported(
    ask: Callable[[], tuple[tuple[str, ...], list[tuple[Any, ...]]]], *, in_order: bool
) -> list[str]:
    try:
        columns, rows = ask()
    except MillstreamError as error:
        return [f"refused: {error.code}: {error.what}"]
    lines = [repr([plain(value) for value in row]) for row in rows]
    return [repr(columns), *(lines if in_order else sorted(lines))]


def ask_spark(spark: SparkSession, text: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    with translating_errors(Limits(), ()):
        found = answer(spark, text)
        return found.columns, read_rows(found, 1_000_000)


@pytest.fixture
def engine(spark: SparkSession, home: Home) -> SparkSession:
    """Spark, with the tables of the home."""
    session = spark.newSession()
    register(session, home, home.tables)
    return session


def hold_in_memory(spark: SparkSession, names: Iterable[str]) -> None:
    """Have Spark answer from rows in memory: to plan the scan of a table takes most of its time."""
    for name in names:
        table = spark.table(name)
        spark.createDataFrame(table.toArrow(), table.schema).createOrReplaceTempView(name)


def verify_alike(spark: SparkSession, home: Home, texts: Iterable[str]) -> None:
    differing = []
    for text in texts:
        in_order = " ORDER BY " in text.rpartition(")")[2]
        ours = reported(lambda text=text: query(home, text), in_order=in_order)  # type: ignore[misc]
        sparks = reported(lambda text=text: ask_spark(spark, text), in_order=in_order)  # type: ignore[misc]
        if ours != sparks or ours[0].startswith("refused: "):
            pairs = [f"  duck  {line}" for line in (Counter(ours) - Counter(sparks)).elements()]
            pairs += [f"  spark {line}" for line in (Counter(sparks) - Counter(ours)).elements()]
            differing.append("\n".join([text, *(pairs or ["  (order)"])]))
    assert not differing, "\n" + "\n".join(differing)


def is_on_versions(text: str) -> bool:
    return " AS OF " in text


def test_both_engines_give_the_same_answers(engine: SparkSession, home: Home) -> None:
    hold_in_memory(engine, home.tables)

    verify_alike(engine, home, [text for text in queries() if not is_on_versions(text)])


def test_both_engines_read_the_same_files(engine: SparkSession, home: Home) -> None:
    every_thirtieth = queries()[::30]

    verify_alike(engine, home, [t for t in queries() if is_on_versions(t) or t in every_thirtieth])


def test_stars_and_names_of_random_joins_mean_in_both_engines_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    home, session = Home.at(tmp_path / "home"), spark.newSession()
    joins.make_tables(home)
    register(session, home, home.tables)
    hold_in_memory(session, home.tables)
    answered, differing = 0, []

    for text in joins.queries(150, seed=7):
        ours = reported(lambda text=text: query(home, text), in_order=False)  # type: ignore[misc]
        sparks = reported(lambda text=text: ask_spark(session, text), in_order=False)  # type: ignore[misc]
        both_refuse = ours[0].startswith("refused: ") and sparks[0].startswith("refused: ")
        answered += ours == sparks
        # Spark knows when two columns of a name are one that was selected twice.
        is_unsure = ours[0].startswith("refused: AMBIGUOUS_COLUMN: ")
        if ours != sparks and not both_refuse and not is_unsure:
            differing.append("\n".join([text, f"  duck  {ours}", f"  spark {sparks}"]))

    assert not differing, "\n" + "\n".join(differing)
    assert answered > 80


def test_a_query_that_spark_cannot_read_is_refused_with_its_reason(engine: SparkSession) -> None:
    with raises("SPARK_REFUSED_SQL", match="PARSE_SYNTAX_ERROR"):
        ask_spark(engine, "SELECT * FROM (")


def test_rows_are_the_same_whether_all_are_read_or_no_more_than_are_printed(
    engine: SparkSession,
) -> None:
    item = "array(named_struct('at', timestamp_seconds(id)))"
    found = answer(engine, f"SELECT id % 7 AS a, id AS a, {item} AS b FROM range(0, 25000, 1, 3)")

    everything = [row for rows in found.batches() for row in rows]

    assert (found.columns, len(everything)) == (("a", "a", "b"), 25_000)
    assert everything == read_rows(found, 25_000)
    assert sum(map(len, found.batches(10))) == 10
