"""Records that a function of the user's reads: a row for each, right or malformed."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, strategies as st
from tests import raw

if TYPE_CHECKING:
    from collections.abc import Callable

ROW: Any = pa.schema({"n": pa.int64(), "_reason": pa.string()})  # type: ignore[arg-type]


def decoded(values: list[bytes | None], schema: str, parse: Callable[..., Any]) -> list[Any]:
    return raw.decoded(values, schema, "json", parse=parse)


def numbers(records: pa.RecordBatch) -> pa.RecordBatch:
    """Read numbers; odd ones are malformed, and what is none raises."""
    rows = []
    for value in records.column("value").to_pylist():
        number = int(value or b"")
        rows.append({"_reason": f"{number} is odd"} if number % 2 else {"n": number})
    return pa.RecordBatch.from_pylist(rows, schema=ROW)


@given(st.lists(st.none() | st.sampled_from([b"2", b"4", b"3", b"x", b"", b"300"]), max_size=40))
def test_a_record_that_raises_alone_is_malformed_and_the_others_are_read(
    values: list[bytes | None],
) -> None:
    def wanted(value: bytes | None) -> tuple[int | None, str | None]:
        match value:
            case None:
                return None, "null record"
            case b"3":
                return None, "3 is odd"
            case b"300":
                return None, "300 does not fit TINYINT, in column 'n'"
            case b"x" | b"":
                return None, f"ValueError: invalid literal for int() with base 10: {value!r}"
        return int(value), None

    found = decoded(values, "n TINYINT", numbers)

    reasons = [re.sub(r" \(test_parse\.py:\d+\)$", "", row["_reason"] or "") for row in found]
    rows = [(row["n"], reason or None) for row, reason in zip(found, reasons, strict=True)]
    assert rows == [wanted(value) for value in values]
    assert [row["_raw"] for row in found] == [
        value if reason else None for value, reason in zip(values, reasons, strict=True)
    ]


def test_a_malformed_record_is_null_in_all_columns() -> None:
    def parse(records: pa.RecordBatch) -> pa.Table:
        return pa.table({"n": [1, 300], "m": [1, 2], "_reason": ["wrong", None]})

    found = decoded([b"1", b"2"], "n TINYINT, m INT", parse)

    assert [(row["n"], row["m"], row["_reason"]) for row in found] == [
        (None, None, "wrong"),
        (None, None, "300 does not fit TINYINT, in column 'n'"),
    ]


def test_a_reason_names_the_line_that_raised() -> None:
    line = numbers.__code__.co_firstlineno + 4

    [row] = decoded([b"x"], "n INT", numbers)

    assert row["_reason"].endswith(f" (test_parse.py:{line})")


def test_columns_get_the_types_of_the_schema() -> None:
    def parse(records: pa.RecordBatch) -> pa.Table:
        at = pa.array([datetime(2026, 11, 18), datetime(2026, 11, 19)])  # noqa: DTZ001
        tags = pa.array([["a"], None])
        word = pa.array(["x", "y"]).dictionary_encode()
        return pa.table({"at": at, "tags": tags, "word": word, "x": pa.array([1, 2])})

    found = decoded(
        [b"1", b"2"], "x DOUBLE, at TIMESTAMP, tags ARRAY<STRING>, word STRING, gone INT", parse
    )

    assert [(row["x"], row["at"].isoformat(), row["word"], row["gone"]) for row in found] == [
        (1.0, "2026-11-18T00:00:00+00:00", "x", None),
        (2.0, "2026-11-19T00:00:00+00:00", "y", None),
    ]
    assert [row["tags"] for row in found] == [["a"], None]


def test_a_null_in_a_column_that_needs_a_value_is_malformed() -> None:
    [row] = decoded([b"3"], "n INT, m INT NOT NULL", lambda r: pa.table({"n": [1]}))

    assert row["_reason"] == "missing required value, in column 'm'"


@pytest.mark.parametrize(
    ("parse", "why"),
    [
        (lambda records: 3, "returned int, not a pyarrow RecordBatch or Table"),
        (lambda records: pa.table({"n": [1]}), "returned 1 rows for 2 records"),
        (lambda records: pa.table({"m": [1, 2]}), "returned column 'm'; the schema has n"),
        (
            lambda records: pa.table({"n": ["1", "2"]}),
            "returned string in column 'n', which is INT",
        ),
        (lambda records: undefined, "name 'undefined' is not defined"),  # type: ignore[name-defined]  # noqa: F821
        (lambda records: Path("/nowhere").read_text(), "No such file or directory"),
    ],
)
def test_what_says_nothing_of_a_record_stops_the_source(
    parse: Callable[..., Any], why: str
) -> None:
    with pytest.raises((TypeError, NameError, OSError), match=re.escape(why)):
        decoded([b"1", b"2"], "n INT", parse)


def test_a_function_that_raises_for_records_together_stops_the_source() -> None:
    def parse(records: pa.RecordBatch) -> pa.Table:
        if records.num_rows > 1:
            message = "one at a time"
            raise ValueError(message)
        return pa.table({"n": pc.cast(records.column("value").cast(pa.string()), pa.int32())})

    with pytest.raises(ValueError, match="one at a time"):
        decoded([b"1", b"2"], "n INT", parse)
