"""Fields by path, fields left over, columns by header, lenient columns and blank lines."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from tests.faults import raises

from millstream.landing.decode import BLANK, NO_RECORD, decoder
from millstream.model.codec import CsvOptions
from millstream.model.record import RecordOptions
from millstream.model.schema import Schema

LINES: dict[str, Any] = {"number_lines": True}


def decode(
    schema: str, records: list[str], record: RecordOptions, how: str = "json", **options: Any
) -> list[dict[str, Any]]:
    """Decode records of one file, a batch for each three of them."""
    run = decoder(Schema.parse(schema), format=how, record=record, **options)  # type: ignore[arg-type]
    batches = [
        pa.RecordBatch.from_pydict(
            {
                "value": pa.array([text.encode() for text in some], pa.binary()),
                "_origin": pa.array(["f"] * len(some), pa.string()),
                "_position": pa.nulls(len(some), pa.int64()),
            }
        )
        for some in (records[n : n + 3] for n in range(0, len(records), 3))
    ]
    return [row for batch in run(iter(batches)) for row in batch.to_pylist()]


# -- paths ---------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "a.b", "b.c", "`", 'q"', "é"])
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from(["", "x"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=5)


def found_at(record: dict[str, Any], name: str, path: list[str]) -> Any:
    """Find a field as docs/how-to/records.md says; raise a ValueError at what is no object."""
    if name in record:
        return record[name]
    value: Any = record
    for part in path:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise TypeError(value)
        value = value.get(part)
    return value


@settings(max_examples=150)
@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_a_field_is_found_by_its_whole_name_or_else_by_path(records: list[dict[str, Any]]) -> None:
    paths = {"a.b": ["a", "b"], "a.b.c": ["a", "b", "c"], "`a.b`.c": ["a.b", "c"]}
    record = RecordOptions(rename=dict(zip(paths, ["ab", "abc", "literal"], strict=True)))

    found = decode(
        "ab BIGINT, abc BIGINT, literal BIGINT", [json.dumps(r) for r in records], record
    )

    for row, written in zip(found, records, strict=True):
        try:
            wanted = [found_at(written, name, path) for name, path in paths.items()]
        except TypeError:
            wanted = ["malformed"]
        if all(value is None or type(value) is int for value in wanted):
            assert (row["_reason"], row["ab"], row["abc"], row["literal"]) == (None, *wanted)
        else:
            assert row["_reason"] is not None


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"a": 3}', "expected object, got int, at $.a"),
        ('{"a": {"b": "x"}}', "expected int, got string, at $.a.b"),
        ('{"a.b": "x", "a": {"b": 1}}', "expected int, got string, at $.a.b"),
        ('{"a": {}}', "missing required field, at $.a.b"),
        ('{"a": null}', "missing required field, at $.a.b"),
        ('{"a": {"b": null}}', "expected int, got null, at $.a.b"),
        ("[1]", "expected object, got array, at $"),
        ('{"a": {"b": 1}', "not JSON: input data was truncated"),
    ],
)
def test_a_path_that_leads_to_nothing_right_is_in_the_reason(record: str, reason: str) -> None:
    [row] = decode("x INT NOT NULL", [record], RecordOptions(rename={"a.b": "x"}))

    assert row["_reason"] == reason


def test_a_field_that_a_struct_cannot_have_has_formats_like_any_other() -> None:
    record = RecordOptions(rename={'a"b': "at"}, formats={"at": ["epoch_s", "yyyy"]})

    found = decode(
        "at TIMESTAMP", ['{"a\\"b": 86400}', '{"a\\"b": "1970"}', '{"a\\"b": "x"}'], record
    )

    assert [row["at"] and row["at"].day for row in found] == [2, 1, None]
    assert found[2]["_reason"] == "expected timestamp as epoch_s or 'yyyy', got 'x', at $.a\"b"


def test_a_struct_with_a_name_that_json_cannot_be_read_by_is_refused() -> None:
    with raises("SCHEMA", match="field .* of a STRUCT has a quote"):
        decode('p STRUCT<`a"b`: INT>', [], RecordOptions())


# -- what is left over ---------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_fields_that_no_column_reads_are_kept(records: list[dict[str, Any]]) -> None:
    texts = [json.dumps(record) for record in records]
    record = RecordOptions(rename={"a.b": "ab"}, rest="more")

    as_map = decode("c STRING, ab STRING, more MAP<STRING, STRING>", texts, record)
    as_json = decode("c STRING, ab STRING, more STRING", texts, record)

    for written, in_map, in_json in zip(records, as_map, as_json, strict=True):
        assert in_map["_reason"] == in_json["_reason"]
        if in_map["_reason"] is None:
            rest = {n: v for n, v in written.items() if n not in ("c", "a.b", "a")}
            texts_of = {
                n: v if v is None or isinstance(v, str) else json.loads(json.dumps(v))
                for n, v in rest.items()
            }
            found = {n: v if n_is_text(rest[n]) else json.loads(v) for n, v in in_map["more"] or ()}
            assert found == texts_of
            assert json.loads(in_json["more"] or "{}") == rest
            assert (in_map["more"] is None) == (not rest)


def n_is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


# -- CSV by header -------------------------------------------------------------------------------

CELLS = st.sampled_from(["", "1", "22", "NA", "-", "x y", 'say "hi"', "a,b"])
COLUMNS = ("id", "user agent", "a.b")


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Draw a header, in any order and with any other columns, and its records."""
    extra = draw(st.lists(st.sampled_from(["x", "y", "ID", "z z"]), max_size=3, unique=True))
    known = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True))
    header = draw(st.permutations([*known, *extra]))
    width = len(header)
    return header, draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=6))


@settings(max_examples=500)
@given(tables(), st.booleans())
def test_columns_are_read_by_the_names_in_the_header(
    drawn: tuple[list[str], list[list[str]]], blank: bool
) -> None:
    header, records = drawn
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *records])
    lines = text.getvalue().split("\n")[:-1]
    if blank:
        lines = [line for written in lines for line in (written, "  ")]
    record = RecordOptions(rest="more", rename={"user agent": "agent"})
    options = CsvOptions(header=True, null_value=["NA", "-"])

    schema = "`a.b` STRING, more MAP<STRING, STRING>, agent STRING, id STRING"
    found = decode(schema, lines, record, "csv", options=options, **LINES)

    assert [row["_reason"] for row in found if row["_reason"] is not None] == [
        NO_RECORD,
        *([BLANK] * (len(records) + 1) if blank else ()),
    ]
    rows = [row for row in found if row["_reason"] is None]
    for row, written in zip(rows, csv.DictReader(io.StringIO(text.getvalue())), strict=True):
        plain = {n: None if v in ("", "NA", "-") else v for n, v in written.items()}
        assert [row["id"], row["agent"], row["a.b"]] == [plain.get(name) for name in COLUMNS]
        rest = {name: value for name, value in plain.items() if name not in COLUMNS}
        assert dict(row["more"] or ()) == rest


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("b", "header says b, which lacks the required column 'a'"),
        ("a,b,a", "header says a, b, a, which has column 'a' twice"),
        ("x,y", "header says x, y; the schema says a, b"),
        ("", "header says ; the schema says a, b"),
    ],
)
def test_a_header_without_the_columns_condemns_its_file(header: str, reason: str) -> None:
    options = CsvOptions(header=True)

    found = decode(
        "a INT NOT NULL, b INT", [header, "1,2"], RecordOptions(), "csv", options=options, **LINES
    )

    assert [row["_reason"] for row in found] == [reason, reason]


def test_a_record_has_as_many_cells_as_the_header() -> None:
    options = CsvOptions(header=True)

    found = decode(
        "a INT", ["x,a", "1,2", "1", "1,2,3"], RecordOptions(), "csv", options=options, **LINES
    )

    assert [(row["a"], row["_reason"]) for row in found[1:]] == [
        (2, None),
        (None, "expected 2 columns, got 1"),
        (None, "expected 2 columns, got 3"),
    ]


@settings(max_examples=500)
@given(
    st.integers(-(10**9), 10**9),
    st.decimals(-(10**9), 10**9, places=2, allow_nan=False),
    st.sampled_from([(",", "."), (",", " "), (",", ""), (".", ","), (".", "'")]),
    st.booleans(),
)
def test_numbers_are_written_with_other_marks(
    whole: int, exact: Decimal, marks: tuple[str, str], grouped: bool
) -> None:
    def written(number: object) -> str:
        text = f"{number:,}" if grouped else f"{number}"
        table = str.maketrans({",": marks[1], ".": marks[0]})
        return f'"{text.translate(table)}"'

    line = ",".join(map(written, (whole, exact, exact)))
    options = CsvOptions(decimal=marks[0], thousands=marks[1])

    [row] = decode(
        "i BIGINT, d DECIMAL(12,2), f DOUBLE", [line], RecordOptions(), "csv", options=options
    )

    assert (row["_reason"], row["i"], row["d"]) == (None, whole, exact)
    assert row["f"] == float(exact)


@pytest.mark.parametrize("cell", ["1.5", "1.23", "1.234.56", "1,5,6", "1,5.0", "1234.567", "."])
def test_a_number_with_the_wrong_marks_is_malformed(cell: str) -> None:
    options = CsvOptions(sep=";", decimal=",", thousands=".")

    [row] = decode("n DOUBLE", [cell], RecordOptions(), "csv", options=options)

    assert row["_reason"] == f"expected float, got {cell!r}, in column 'n'"


# -- lenient -------------------------------------------------------------------------------------

TYPES = {
    "i": "INT",
    "f": "DOUBLE",
    "d": "DECIMAL(5,2)",
    "b": "BOOLEAN",
    "s": "STRING",
    "t": "TIMESTAMP",
    "e": "TIMESTAMP",
}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
LENIENT = RecordOptions(lenient=True, formats={"e": "epoch_ms"})
STRICT = RecordOptions(formats={"e": "epoch_ms"})
WRITTEN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.sampled_from([1.0, -2.5, 1e3, 1e300]),
    st.sampled_from(
        ["", " ", "12", " -3 ", "1.0", "1.50", "x", "Yes", "off", "T", "2026-05-01", " 7e1"]
    ),
    st.just([1]),
)


WORDS = {
    **dict.fromkeys(("true", "yes", "y", "t", "on", "1"), True),
    **dict.fromkeys(("false", "no", "n", "f", "off", "0"), False),
}
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def canonical(kind: str, value: Any) -> Any:
    """Write a value as its type is written, by the rules of docs/how-to/records.md."""
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    if isinstance(value, list) or value is None or kind == "STRING":
        return text if kind == "STRING" and not isinstance(value, list | None) else value
    if not text:
        return None
    if kind == "BOOLEAN":
        return WORDS.get(text.lower(), value)
    if kind == "INT" and not isinstance(value, bool) and NUMBER.fullmatch(text):
        exact = Decimal(text)
        return int(exact) if exact == exact.to_integral_value() else value
    if kind == "DOUBLE" and isinstance(value, str) and NUMBER.fullmatch(text):
        return float(text)
    return text if isinstance(value, str) else value


@settings(max_examples=300)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(TYPES, WRITTEN)))
def test_lenient_columns_read_what_almost_fits_as_if_it_were_written_right(
    record: dict[str, Any],
) -> None:
    text = json.dumps(record)
    fits = {
        name: decode(SCHEMA, [json.dumps({name: value})], STRICT)[0]["_reason"] is None
        for name, value in record.items()
    }
    right = {n: v if fits[n] else canonical(TYPES[n], v) for n, v in record.items()}

    [row] = decode(SCHEMA, [text], LENIENT)
    [wanted] = decode(SCHEMA, [json.dumps(right)], STRICT)

    assert (row["_reason"] is None) == (wanted["_reason"] is None)
    assert {name: row[name] for name in TYPES} == {name: wanted[name] for name in TYPES}
    if row["_reason"] is None:
        changed = [name for name in TYPES if name in record and not fits[name]]
        assert row["_bent"] == (", ".join(changed) or None)
        assert row["_raw"] is None
    else:
        assert (row["_raw"], row["_bent"]) == (text.encode(), None)


@settings(max_examples=500)
@given(
    st.lists(
        st.sampled_from(["", " 1 ", "2,0", "x", "YES", "0", "1.000", "-1,5", "NA"]),
        min_size=3,
        max_size=3,
    )
)
def test_lenient_cells_are_read_as_if_they_were_written_right(cells: list[str]) -> None:
    options = CsvOptions(sep=";", decimal=",", thousands=".", null_value="NA")
    record = RecordOptions(lenient=["i", "b", "f"])
    right = {" 1 ": "1", "2,0": "2"}

    [row] = decode("i INT, b BOOLEAN, f DOUBLE", [";".join(cells)], record, "csv", options=options)

    whole: dict[str, Any] = {"": None, "NA": None, " 1 ": 1, "2,0": 2, "0": 0, "1.000": 1000}
    truth: dict[str, Any] = {"": None, "NA": None, "YES": True, "0": False, " 1 ": True}
    reals: dict[str, Any] = {**whole, "2,0": 2.0, "-1,5": -1.5}
    if all(c in of for c, of in zip(cells, (whole, truth, reals), strict=True)):
        found = [row["i"], row["b"], row["f"]]
        assert found == [whole[cells[0]], truth[cells[1]], reals[cells[2]]]
        bent = [
            *(["i"] if cells[0] in right else []),
            *(["b"] if cells[1] in ("YES", "0", " 1 ") else []),
            *(["f"] if cells[2] == " 1 " else []),
        ]
        assert row["_bent"] == (", ".join(bent) or None)
    else:
        assert row["_reason"] is not None


def test_a_path_and_an_odd_name_are_lenient_too() -> None:
    record = RecordOptions(lenient=True, rename={"a.b": "n", 'q"': "m"})

    [row] = decode("n INT, m INT", ['{"a": {"b": "1"}, "q\\"": 2.0}'], record)

    assert (row["n"], row["m"], row["_bent"], row["_reason"]) == (1, 2, "n, m", None)


def test_a_record_that_is_no_text_is_not_bent() -> None:
    run = decoder(Schema.parse("i INT"), format="json", record=RecordOptions(lenient=True))
    raw = b'{"i": "1", "x": "\xff"}'
    records: dict[str, Any] = {"value": [raw], "_origin": ["f"], "_position": [1]}

    [found] = run(iter([pa.RecordBatch.from_pydict(records)]))

    assert found.column("_reason").to_pylist() == ["not UTF-8: invalid start byte (byte 17)"]


def test_the_reason_is_of_what_lenience_does_not_help() -> None:
    found = decode("i INT, n INT", ['{"i": "1", "n": "x"}', '{"i": "9999999999"}'], LENIENT)

    assert [row["_reason"] for row in found] == [
        "expected int, got string, at $.n",
        "9999999999 does not fit INT, at $.i",
    ]


# -- blank lines ---------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["", " ", "\t\r", "1", "x"]), max_size=9))
@pytest.mark.parametrize("how", ["json", "csv", "text"])
def test_blank_lines_are_no_records(how: str, lines: list[str]) -> None:
    record = RecordOptions()
    schema = "v STRING" if how == "text" else "v INT"
    texts = [f'{{"v": {line}}}' if how == "json" and line.strip() else line for line in lines]

    found = decode(schema, texts, record, how, **LINES)

    assert [row["_reason"] == BLANK for row in found] == [not line.strip() for line in lines]
    assert [row["_position"] for row in found] == list(range(1, len(lines) + 1))
    [alone] = decode(schema, [""], record, how)
    assert alone["_reason"] == (None if how == "text" else "empty record")
