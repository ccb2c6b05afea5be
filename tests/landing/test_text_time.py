"""Times that are read from texts in Arrow: where they are certain, Spark gives the same."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from millstream.landing.event_time import in_spark, within_years
from millstream.landing.text_time import TextTime
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse("day STRING, clock STRING, d DATE, h INT, m STRUCT<ts: STRING>, `a b` STRING")
CASTS = [
    "to_timestamp(day || ' ' || clock)",
    "CAST(concat(d, 'T', clock) AS TIMESTAMP)",
    "try_to_timestamp(m . ts)",
    "Timestamp(`a b`)",
    "to_timestamp((d) || ' ' || h, 'yyyy-MM-dd HH')",
]
PATTERNS = {
    "yyyy-MM-dd HH": "%Y-%m-%d %H",
    "dd/MM/yyyy HH:mm": "%d/%m/%Y %H:%M",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
    "yyyyMMdd HHmmss.SSS": "%Y%m%d %H%M%S.%f",
    "yyyy-MM-dd HH:mm:ss.SSSSSSSSS": "%Y-%m-%d %H:%M:%S.%f123",
    "yyyy-MM-dd HH:mm:ss.SSxxx": "%Y-%m-%d %H:%M:%S.%f+01:30",
    "MM.dd.yyyy HH:mm Z": "%m.%d.%Y %H:%M -0830",
    "dd yyyy MM XXX": "%d %Y %m +18:00",
}
ODD = " 0:-+.TtZz19aA/é\t\u0661"
WORDS = ["", "-", "soon", "now", "epoch", "Ⅻ", "١٢"]
EDGES = ["0001-01-01", "9999-12-31", "1900-02-29", "2000-02-29", "1582-10-10", "0000-01-01"]


def moment_of(dice: random.Random) -> datetime:
    """Draw a moment: of any year, and often where clocks and calendars have edges."""
    if dice.random() < 0.3:
        days = [date(1969, 12, 31), date(2024, 2, 29), date(2026, 3, 29), date(1, 1, 1)]
        moment = datetime.combine(dice.choice(days), datetime.min.time())
        return moment + timedelta(microseconds=dice.choice([0, 1, 86_399_999_999]))
    return datetime.fromisoformat("0001-01-01") + timedelta(
        microseconds=dice.randrange(9998 * 365 * 86_400_000_000)
    )


def damaged(text: str, dice: random.Random) -> str:
    """Change a text a little, or not."""
    for _ in range(dice.choice([0, 0, 0, 1, 1, 2])):
        place = dice.randrange(len(text) + 1)
        cut = dice.choice([0, 1, 1, 1])
        text = text[:place] + dice.choice(["", *ODD, *ODD]) + text[place + cut :]
    return text


def clock_of(dice: random.Random) -> str:
    """Draw a time of day as people write it."""
    moment = moment_of(dice)
    form = dice.choice(["%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S.%f", "%H"])
    text = f"{moment:{form}}"
    if form.endswith("f"):
        text = text[: dice.randrange(len(text) - 6, len(text) + 1)] + dice.choice(["", "", "789"])
    return text + dice.choice(["", "", "Z", "z", "+01:00", "-18:00", "+18:01", "+0100", " UTC"])


def row_of(dice: random.Random) -> list[Any]:
    """Draw the columns of a record; some are null."""
    day, clock = f"{moment_of(dice).date()}", clock_of(dice)
    edge = dice.choice([day] * 3 + EDGES)
    row: list[Any] = [
        damaged(edge, dice),
        damaged(clock, dice),
        moment_of(dice).date(),
        dice.randrange(-3, 30),
        (damaged(f"{day}{dice.choice(' TTt')}{clock}", dice),),
        damaged(f"{day} {clock}", dice),
    ]
    if dice.random() < 0.05:
        word = dice.choice(WORDS)
        row = [word, word, row[2], row[3], (word,), word]
    return [None if dice.random() < 0.03 else value for value in row]


def compared(spark: SparkSession, expression: str, rows: list[list[Any]]) -> tuple[int, int]:
    """Return the numbers of rows that are certain, and of those with a time; compare them."""
    frame = spark.createDataFrame(rows, SCHEMA.to_ddl())
    time = TextTime.of(expression, SCHEMA)
    assert time is not None, expression
    [batch] = frame.toArrow().combine_chunks().to_batches()
    found, certain = time.compute(batch)
    table = frame.select(in_spark(expression, F.lit(True)).alias("at")).toArrow()
    wanted = within_years(table["at"].combine_chunks()).cast(pa.int64()).to_pylist()
    got = within_years(found).cast(pa.int64()).to_pylist()
    sure = certain.to_pylist()
    wrong = [
        (row, g, w) for row, g, w, s in zip(rows, got, wanted, sure, strict=True) if s and g != w
    ]
    assert not wrong, (expression, wrong[:5])
    return sum(sure), sum(value is not None for value in wanted)


@pytest.mark.spark
@pytest.mark.parametrize("expression", CASTS)
def test_a_text_that_is_cast_is_certain_only_if_spark_reads_the_same(
    spark: SparkSession, expression: str
) -> None:
    dice = random.Random(expression)

    certain, right = compared(spark, expression, [row_of(dice) for _ in range(20_000)])

    assert certain > 0.6 * right > 1_000


@pytest.mark.spark
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_text_of_a_pattern_is_certain_only_if_spark_reads_the_same(
    spark: SparkSession, pattern: str
) -> None:
    dice = random.Random(pattern)
    rows = []
    for _ in range(5_000):
        moment = moment_of(dice)
        text = f"{moment:{PATTERNS[pattern].replace('%Y', f'{moment.year:04}')}}"
        text = text.replace(f"{moment:%f}", f"{moment:%f}"[: pattern.count("S") % 9 or 6])
        rows.append([damaged(text, dice), *row_of(dice)[1:]])

    certain, right = compared(spark, f"to_timestamp(day, '{pattern}')", rows)

    assert certain > 0.9 * right > 1_000


@pytest.mark.parametrize(
    "expression",
    [
        "to_timestamp(upper(day))",
        "to_timestamp(day 'x')",
        "to_timestamp(day || 'it\\'s')",
        "to_timestamp(day) + INTERVAL 1 SECOND",
        "to_timestamp(DAY)",
        "to_timestamp(days)",
        "to_timestamp(m)",
        "to_timestamp(h, 'yyyyMMdd')",
        "to_timestamp((d), 'yyyy-dd-MM')",
        "to_timestamp(day, clock)",
        "timestamp(day, 'yyyy-MM-dd')",
        "cast(day AS DATE)",
        "to_timestamp(day, 'yyyy')",
        "to_timestamp(day, 'dd MMM yyyy')",
        "to_timestamp(day, 'd/M/yyyy')",
        "to_timestamp(day, 'yy-MM-dd')",
        "to_timestamp(day, 'yyyyMMddHHmmssSSS')",
        "to_timestamp(day, 'EEE yyyy-MM-dd')",
        "to_timestamp(day, 'yyyy-MM-dd [HH]')",
        "to_timestamp(day -- 'yyyy-MM-dd')\n)",
    ],
)
def test_other_expressions_are_left_to_spark(expression: str) -> None:
    assert TextTime.of(expression, SCHEMA) is None
