from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from millstream.landing.decode.column import UnfitError
from millstream.landing.decode.time_column import TimeColumn
from millstream.model.data_type import Atom
from millstream.model.time_format import format_fault

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"epoch_s": 10**9, "epoch_ms": 10**6, "epoch_us": 10**3, "epoch_ns": 1}


def read(values: list[Any], *formats: str, kind: Atom = Atom.TIMESTAMP) -> list[Any]:
    """Read values by formats: None for one that fits none."""
    column = TimeColumn(kind, formats)
    try:
        found = column.build(values)
    except UnfitError as error:
        kept = [None if i in error.rows else value for i, value in enumerate(values)]
        found = column.build(kept)
    read_back: list[Any] = found.to_pylist()
    return read_back


@given(
    st.sampled_from([*UNITS]),
    st.lists(
        st.one_of(
            st.none(),
            st.integers(-(2**63), 2**63 - 1),
            st.integers(-(2**34), 2**34),
            st.floats(allow_nan=False),
            st.decimals(-(10**11), 10**11, places=4).map(float),
            st.text(max_size=3),
        ),
        max_size=8,
    ),
    st.booleans(),
)
@settings(max_examples=400)
def test_numbers_since_1970_are_read_as_plain_python_reads_them(
    form: str, values: list[Any], as_text: bool
) -> None:
    written = [str(v) if as_text and v is not None else v for v in values]

    def expected(value: Any) -> datetime | None:
        try:
            nanoseconds = Decimal(str(value)) * UNITS[form]
            return EPOCH + timedelta(
                microseconds=int(nanoseconds // 1000)
                - (nanoseconds < 0 and nanoseconds % 1000 != 0)
            )
        except (ArithmeticError, ValueError):
            return None

    assert read(written, form) == [None if v is None else expected(v) for v in written]


@pytest.mark.parametrize(
    "value", ["", " 1", "1_0", "0x1F", "NaN", "Infinity", "१२", "1e400", "--1"]
)
def test_what_is_no_number_is_no_time(value: str) -> None:
    assert read([value, "0"], "epoch_ms") == [None, EPOCH]


def test_each_value_is_read_by_the_first_format_that_fits() -> None:
    values = ["01/02/2026", "01/13/2026", None, "1700000000", "x", "2026-03-04"]
    formats = ("dd/MM/yyyy", "MM/dd/yyyy", "epoch_s", "iso")
    wanted = [date(2026, 2, 1), date(2026, 1, 13), None, date(2023, 11, 14), None, date(2026, 3, 4)]

    assert read(values, *formats, kind=Atom.DATE) == wanted
    for value, day in zip(values, wanted, strict=True):
        assert read([value], *formats, kind=Atom.DATE) == [day]


def test_a_date_before_1970_is_that_of_its_moment() -> None:
    assert read([-1, 0, -86_400_000, -86_400_001], "epoch_ms", kind=Atom.DATE) == [
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(1969, 12, 31),
        date(1969, 12, 30),
    ]


def test_a_weekday_must_be_that_of_the_date() -> None:
    pattern = "EEE, dd MMM yyyy HH:mm:ss Z"
    right, wrong = "Wed, 18 Nov 2026 14:07:18 +0100", "Tue, 18 Nov 2026 14:07:18 +0100"

    assert read([right, wrong], pattern) == [datetime(2026, 11, 18, 13, 7, 18, tzinfo=UTC), None]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yyyy-MM-ddTHH:mm", "'T' is no field; put text in quotes, as in 'T'"),
        ("YYYY-MM-dd", "'YYYY' is no field"),
        ("yyyyy", "too long or too short"),
        ("yyyy 'x", "a quote is not closed"),
        ("yyyy [MM", "a bracket has no partner"),
        ("yyyy MM] [dd", "a bracket has no partner"),
        ("dd dd", "'d' is there twice"),
        ("hh HH", "an hour of 24 beside one of 12"),
        ("-", "it has no field"),
        ("yyyy#", "must be in quotes"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused(text: str, why: str) -> None:
    assert why in str(format_fault(text))
