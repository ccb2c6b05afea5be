"""Comparisons with earlier steps, judged as Spark judges them."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from sqlglot import exp

from millstream.operators.patterns.condition import NotAConditionError, parse
from millstream.operators.patterns.evaluate import NameScope, judge
from millstream.operators.patterns.rows import READ_AS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.operators.patterns.evaluate import Kind

KINDS: dict[str, Kind] = {
    "i": "integer", "j": "integer", "d": "double", "e": "double", "f": "float", "p": "decimal",
    "q": "decimal", "s": "string", "t": "string", "b": "boolean", "c": "boolean",
    "at": "timestamp", "u": "timestamp", "day": "date", "x": "date",
}  # fmt: skip
TYPES = (
    "i INT, j BIGINT, d DOUBLE, e DOUBLE, f FLOAT, p DECIMAL(10,2), q DECIMAL(8,4), s STRING, "
    "t STRING, b BOOLEAN, c BOOLEAN, at TIMESTAMP, u TIMESTAMP, day DATE, x DATE"
)
COMPARED = [
    f"{one} {operator} {other}"
    for operator, (one, other) in product(
        ("=", "<>", "<", "<=", ">", ">=", "<=>"),
        [
            ("i", "j"), ("i", "d"), ("j", "d"), ("d", "e"), ("f", "d"), ("f", "0.1"), ("p", "q"),
            ("p", "d"), ("p", "1.1"), ("q", "i"), ("d", "0.1"), ("d", "1e-1"), ("s", "t"),
            ("b", "c"), ("at", "u"), ("day", "x"), ("s", "'Ä'"), ("i", "NULL"),
        ],
    )
]  # fmt: skip
EXPRESSIONS = [
    *COMPARED,
    "b AND c", "b OR c", "NOT b", "b AND NOT c OR b", "i IN (1, 2, NULL)", "s NOT IN ('a', t)",
    "i IN (j, 3)", "i BETWEEN j AND 3", "NOT (i BETWEEN 1 AND j)", "i IS NULL", "b IS NOT TRUE",
    "b IS FALSE", "d IS NOT NULL", "i + j > 3", "i - 1 < j * 2", "d + i > e", "d * p > 0.3",
    "p + q = 2.2", "p - q > 0", "-i < j", "abs(i - j) <= 1", "-d = e", "abs(p) > 1",
    "at - u < INTERVAL 1 MINUTE", "at + INTERVAL 5 SECONDS >= u", "at - INTERVAL '1' HOUR < u",
    "at - u > INTERVAL 2 DAYS", "coalesce(i, j, 0) = 0", "coalesce(s, t) <> 'a'",
    "(i > 1) = b", "i = 1 OR d > 0 AND s = 'a'", "TRUE", "NULL", "i > NULL",
]  # fmt: skip
_NAN, _INF = float("nan"), float("inf")
ROWS: list[tuple[Any, ...]] = [
    (
        1, 1, 0.1, 0.1, 0.1, Decimal("1.10"), Decimal("1.1000"), "a", "b", True, False,
        datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=UTC),
        date(2026, 1, 1), date(2025, 12, 31),
    ),
    (
        2, 2**53 + 1, 2.0**53, _NAN, 0.25, Decimal("-1.10"), Decimal("3.3000"), "Ä", "Z", True,
        None, datetime(2026, 1, 3, 12, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC),
        date(1969, 1, 1), date(1969, 1, 1),
    ),
    (
        -3, 3, _NAN, _NAN, _NAN, Decimal("0.00"), Decimal("0.0001"), "\U0001f600", "\uffff",
        False, False, datetime(1969, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC),
        date(2026, 1, 1), None,
    ),
    (
        0, -1, -0.0, 0.0, -0.0, Decimal("99999999.99"), Decimal("0"), "", "a", None, True,
        datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC), None, None, date(2026, 1, 1),
    ),
    (None, 3, _INF, -_INF, _INF, None, Decimal("-1.1"), None, "a", None, None, *[None] * 4),
    (3, None, None, 1.5, None, Decimal("1.10"), None, "a", None, False, None, None,
     datetime(2026, 1, 1, tzinfo=UTC), None, None),
]  # fmt: skip


@pytest.mark.spark
def test_python_judges_as_spark_does(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    frame = spark.createDataFrame(ROWS, TYPES)
    values = [
        F.expr(READ_AS.get(kind, "{}").format(f"`{name}`")).alias(name)
        for name, kind in KINDS.items()
    ]
    seen = F.to_json(F.struct(*values), {"ignoreNullFields": "false"}).alias("seen")
    answers = [F.expr(text).alias(str(n)) for n, text in enumerate(EXPRESSIONS)]
    scope = NameScope({(name,): (n, kind) for n, (name, kind) in enumerate(KINDS.items())}, {})

    differences = []
    for row in frame.select(seen, *answers).collect():
        now = [*json.loads(row.seen).values()]
        for number, text in enumerate(EXPRESSIONS):
            alone = parse(text, ()).alone
            assert alone is not None
            found = judge(alone, scope).value(now, lambda _: [])
            if found is not row[str(number)]:
                differences.append((text, now, found, row[str(number)]))

    assert differences == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("i = s", "it compares integer with string"),
        ("at = day", "it compares timestamp with date"),
        ("i / j > 1", "i / j cannot be judged together with other steps"),
        ("upper(s) = 'A'", "UPPER(s) cannot be judged together with other steps"),
        ("p * q > 1", "mul of decimal and decimal is not done exactly as in Spark"),
        ("f + f > 1", "add of float and float is not done exactly as in Spark"),
        ("at - u < INTERVAL 1 MONTH", "is not a whole number of weeks, days, hours, …"),
        ("coalesce(i, s) = 'a'", "coalesce is given integer and string"),
        ("nope > 1", "nope is not a column that can be compared"),
        ("i IN (SELECT 1)", "it holds a query or a window"),
        ("s LIKE 'a%'", "s LIKE 'a%' cannot be judged together with other steps"),
    ],
)
def test_what_python_does_not_judge_exactly_is_refused(text: str, why: str) -> None:
    scope = NameScope({(name,): (n, kind) for n, (name, kind) in enumerate(KINDS.items())}, {})

    with pytest.raises(NotAConditionError, match=re.escape(why)):
        judge(parse(text, ()).alone or exp.true(), scope)


def test_decimals_keep_all_digits_and_sums_of_doubles_are_those_of_spark() -> None:
    scope = NameScope({("p",): (0, "decimal"), ("d",): (1, "double")}, {"a": 0})
    long = "12345678901234567890123456789012345678"
    past = [[long, 0.1], ["1", 0.2], ["-2", 0.3]]

    for text in (
        f"sum(a.p) = {int(long) - 1}.0",
        f"p + 1 = {int(long) + 1}.0",
        f"-p = -{long}.0",
        f"abs(p) - 1 = {int(long) - 1}.0",
        "sum(a.d) = 6.000000000000001e-1",
    ):
        compared = parse(text, {"a"})
        part = compared.compared or compared.alone
        assert part is not None
        assert judge(part, scope).value([long, 0.0], lambda _: past) is True, text


def test_aggregates_leave_out_nulls_and_a_step_without_rows_has_none() -> None:
    scope = NameScope({("w",): (0, "integer")}, {"a": 0, "b": 1})
    past: dict[int, list[list[Any]]] = {0: [[1], [None], [4]], 1: []}
    reported = {
        "sum(a.w) = 5": True,
        "avg(a.w) = 2.5": True,
        "count(a.w) = 2": True,
        "count(a.*) = 3": True,
        "min(a.w) = 1 AND max(a.w) = 4": True,
        "first(a.w) = 1 AND last(a.w) = 4 AND a.w = 4": True,
        "sum(a.w * 2 + 1) = 12": True,
        "w > sum(a.w)": False,
        "b.w = 1": None,
        "sum(b.w) > 0": None,
        "count(b.w) = 0": True,
        "b.w IS NULL": True,
    }

    for text, wanted in reported.items():
        compared = parse(text, {"a", "b"}).compared
        assert compared is not None
        assert judge(compared, scope).value([3], past.__getitem__) is wanted, text


@pytest.mark.parametrize(
    ("condition", "digits", "is_exact"),
    [
        ("d + a.d > 1", (38, 18), False),
        ("d - 1 > a.d", (38, 18), False),
        ("d - a.d > 0.5", (37, 18), True),
        ("sum(a.d) + d > 1", (27, 2), True),
        ("sum(a.d) + d > 1", (28, 2), False),
        ("-d + a.d + 0.5 > 1", (36, 2), True),
        ("-d + a.d + 0.5 > 1", (37, 2), False),
        ("d > a.d", (38, 18), True),
        ("d - 1 > a.d", (30, 25), True),
    ],
)
def test_decimals_that_spark_would_round_are_refused(
    condition: str, digits: tuple[int, int], is_exact: bool
) -> None:
    scope = NameScope({("d",): (0, "decimal")}, {"a": 0}, {("d",): digits})
    compared = parse(condition, {"a"}).compared
    assert compared is not None

    with nullcontext() if is_exact else pytest.raises(NotAConditionError, match="Spark rounds"):
        judge(compared, scope)
