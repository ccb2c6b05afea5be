import base64
import json
import math
import struct
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyspark import cloudpickle

from millstream.errors import SchemaError
from millstream.landing.decode import NO_RECORD, Format, decoded_schema, decoder
from millstream.landing.decode.column import UNFIT, ways
from millstream.model.codec import CsvOptions
from millstream.model.data_type import Array, Atom, Decimal, Field, Map, Struct, Type
from millstream.model.record import PLAIN, RecordOptions
from millstream.model.schema import Schema

Raw = bytes | str | None


def batch(values: Iterable[Raw], *, origin: str | list[str] = "f", **extra: Any) -> pa.RecordBatch:
    raws = [v.encode() if isinstance(v, str) else v for v in values]
    origins = [origin] * len(raws) if isinstance(origin, str) else origin
    columns = {
        "value": pa.array(raws, pa.binary()),
        "_origin": pa.array(origins, pa.string()),
        "_position": pa.nulls(len(raws), pa.int64()),
        **extra,
    }
    return pa.RecordBatch.from_pydict(columns)


def decode(
    ddl: str | Schema,
    *batches: pa.RecordBatch,
    how: Format = "json",
    options: CsvOptions | None = None,
    record: RecordOptions = PLAIN,
    number_lines: bool = False,
) -> list[dict[str, Any]]:
    schema = ddl if isinstance(ddl, Schema) else Schema.parse(ddl)
    run = decoder(schema, format=how, options=options, record=record, number_lines=number_lines)
    return [row for out in run(iter(batches)) for row in out.to_pylist(maps_as_pydicts="strict")]


def value(kind: str, text: str) -> Any:
    """Decode one JSON value as a type; a malformed record gives its reason."""
    [row] = decode(f"n {kind}", batch([f'{{"n": {text}}}']))
    return row["n"] if row["_reason"] is None else row["_reason"]


def reason(ddl: str, raw: Raw, **how: Any) -> str | None:
    [row] = decode(ddl, batch([raw]), **how)
    assert row["_raw"] == (raw.encode() if isinstance(raw, str) else raw)
    found: str | None = row["_reason"]
    return found


# -- JSON --------------------------------------------------------------------------------------


def test_a_right_record_becomes_columns_without_reason_or_raw() -> None:
    record = '{"vehicle": "v1", "n": 3, "unknown": [1]}'

    [row] = decode("n INT, vehicle STRING, gone DOUBLE", batch([record]))

    assert row == {
        "n": 3,
        "vehicle": "v1",
        "gone": None,
        "_reason": None,
        "_raw": None,
        "_origin": "f",
        "_position": None,
    }


def test_a_malformed_record_is_null_in_all_columns_and_keeps_its_bytes() -> None:
    good, bad = '{"s": "a", "n": 1}', '{"s": "b", "n": 300}'

    rows = decode("s STRING, n TINYINT", batch([good, bad, good]))

    assert [(row["s"], row["n"], row["_raw"]) for row in rows] == [
        ("a", 1, None),
        (None, None, bad.encode()),
        ("a", 1, None),
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, "null record"),
        ("", "empty record"),
        (" \t", "empty record"),
        ("[]", "expected object, got array, at $"),
        ("7", "expected object, got int, at $"),
        ('"a"', "expected object, got string, at $"),
        ('{"n": "a"}', "expected int, got string, at $.n"),
        ('{"n": 1.5}', "expected int, got float, at $.n"),
        ('{"n": true}', "expected int, got boolean, at $.n"),
        ('{"n": null}', "expected int, got null, at $.n"),
        ("{}", "missing required field, at $.n"),
        ('{"N": 1}', "missing required field, at $.n"),
        ('{"n": 1', "not JSON: input data was truncated"),
        ('{"n": 1} x', "not JSON: trailing characters (byte 10)"),
        ('{"n": NaN}', "not JSON: invalid character (byte 6)"),
        ('{"n": 1, "x": Infinity}', "not JSON: invalid character (byte 14)"),
        ('{"n": 01}', "not JSON: invalid number (byte 7)"),
        (b'{"n": 1, "x": "\xff"}', "not UTF-8: invalid start byte (byte 15)"),
        ('{"n": 1, "x": ' + "[" * 100_000, "not JSON: nested too deeply"),
        ('{"n": ' + '{"a":' * 100_000, "not JSON: nested too deeply"),
        ('{"n": 99999999999999999999}', "99999999999999999999 does not fit INT, at $.n"),
        ('{"n": ' + "9" * 5000 + "}", "not JSON: integer value out of range"),
    ],
)
def test_a_malformed_object_says_what_is_wrong_and_where(raw: Raw, expected: str) -> None:
    assert reason("n INT NOT NULL", raw) == expected


@pytest.mark.parametrize(
    ("kind", "least", "greatest"),
    [
        ("TINYINT", -(2**7), 2**7 - 1),
        ("SMALLINT", -(2**15), 2**15 - 1),
        ("INT", -(2**31), 2**31 - 1),
        ("BIGINT", -(2**63), 2**63 - 1),
    ],
)
def test_integers_keep_to_the_range_of_their_type(kind: str, least: int, greatest: int) -> None:
    assert [value(kind, str(n)) for n in (least, greatest)] == [least, greatest]
    for n in (least - 1, greatest + 1):
        assert value(kind, str(n)) == f"{n} does not fit {kind}, at $.n"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("DOUBLE", "1.5", 1.5),
        ("DOUBLE", "3", 3.0),
        ("DOUBLE", '"1.5"', "expected float, got string, at $.n"),
        ("DOUBLE", "1e400", "1E+400 does not fit DOUBLE, at $.n"),
        ("FLOAT", "1.5", 1.5),
        ("FLOAT", "1e300", "1E+300 does not fit FLOAT, at $.n"),
        ("BOOLEAN", "true", True),
        ("BOOLEAN", "1", "expected boolean, got int, at $.n"),
        ("BOOLEAN", '"true"', "expected boolean, got string, at $.n"),
        ("STRING", '"é\\u00e9"', "éé"),
        ("STRING", "5", "expected string, got int, at $.n"),
        ("BINARY", '"aGk="', b"hi"),
        ("BINARY", '"aG="', "expected base64, got 'aG=', at $.n"),
        ("BINARY", "5", "expected base64 text, got int, at $.n"),
        ("DECIMAL(5,2)", "123.45", Number("123.45")),
        ("DECIMAL(5,2)", "1.500", Number("1.50")),
        ("DECIMAL(5,2)", "7", Number("7.00")),
        ("DECIMAL(5,2)", "0e50", Number("0.00")),
        ("DECIMAL(5,2)", '"-1e2"', Number("-100.00")),
        ("DECIMAL(38,20)", "0.12345678901234567890", Number("0.12345678901234567890")),
        ("DECIMAL(5,2)", "123.456", "123.456 does not fit DECIMAL(5,2), at $.n"),
        ("DECIMAL(5,2)", "1234", "1234 does not fit DECIMAL(5,2), at $.n"),
        ("DECIMAL(5,2)", '"1234"', "1234 does not fit DECIMAL(5,2), at $.n"),
        ("DECIMAL(5,2)", "1e99999", "1E+99999 does not fit DECIMAL(5,2), at $.n"),
        ("DECIMAL(5,2)", '"1_0"', "expected decimal, got '1_0', at $.n"),
        ("DECIMAL(5,2)", '"NaN"', "expected decimal, got 'NaN', at $.n"),
        ("DECIMAL(5,2)", "true", "expected decimal, got boolean, at $.n"),
        ("DECIMAL(5,2) NOT NULL", "null", "expected decimal, got null, at $.n"),
        ("DATE", '"2026-11-15"', date(2026, 11, 15)),
        ("DATE", '"2026-11-31"', "expected date, got '2026-11-31', at $.n"),
        ("DATE", '"0000-01-01"', "expected date, got '0000-01-01', at $.n"),
        ("DATE", '"2026-11-15T00:00:00"', "expected date, got '2026-11-15T00:00:00', at $.n"),
        ("DATE", "5", "expected date text, got int, at $.n"),
        ("ARRAY<INT>", "[1, null]", [1, None]),
        ("ARRAY<INT>", "[1, 2, 3000000000]", "3000000000 does not fit INT, at $.n[2]"),
        ("ARRAY<INT>", '"a"', "expected array, got string, at $.n"),
        ("MAP<STRING, DOUBLE>", '{"a": 1, "b": null}', {"a": 1.0, "b": None}),
        ("MAP<STRING, INT>", '{"a": "x"}', "expected int, got string, at $.n.a"),
        ("MAP<STRING, INT>", "[]", "expected object, got array, at $.n"),
        ("STRUCT<a: INT, b: STRING>", '{"b": "x"}', {"a": None, "b": "x"}),
        ("STRUCT<a: INT NOT NULL>", "{}", "missing required field, at $.n.a"),
        ("STRUCT<a: ARRAY<DATE>>", '{"a": ["x"]}', "expected date, got 'x', at $.n.a[0]"),
    ],
)
def test_each_type_takes_its_own_values_and_no_others(kind: str, text: str, expected: Any) -> None:
    assert value(kind, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-15T12:00:00Z", datetime(2026, 11, 15, 12, tzinfo=UTC)),
        ("2026-11-15 12:00:00.123Z", datetime(2026, 11, 15, 12, 0, 0, 123000, tzinfo=UTC)),
        ("2026-11-15T12:00:00.123456789Z", datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)),
        ("1969-12-31T23:59:59.9999999Z", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        ("2026-11-15T12:00:00+02:00", datetime(2026, 11, 15, 10, tzinfo=UTC)),
        ("2026-11-15T12:00:00-0030", datetime(2026, 11, 15, 12, 30, tzinfo=UTC)),
        ("2026-11-15T12:00:00+0000", datetime(2026, 11, 15, 12, tzinfo=UTC)),
        ("2026-11-15T12:00:00", datetime(2026, 11, 15, 12, tzinfo=UTC)),
        ("2026-11-15", datetime(2026, 11, 15, tzinfo=UTC)),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ],
)
def test_a_timestamp_is_iso_text_and_utc_unless_it_says_otherwise(text: str, expected: Any) -> None:
    assert value("TIMESTAMP", f'"{text}"') == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "nope", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z"),
        *("2026-11-15T24:00:00Z", "2026-11-15T12:00:60Z", "2026-11-15T12:00:00+25:00"),
        *("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-11-15Z"),
        *(" 2026-11-15", "2026-11-15T12:00:00 Z", "20261115T120000Z", "1794744000"),
    ],
)
def test_other_text_is_not_a_timestamp(text: str) -> None:
    assert value("TIMESTAMP", f'"{text}"') == f"expected timestamp, got {text!r}, at $.n"


def test_a_number_is_not_a_timestamp() -> None:
    assert value("TIMESTAMP", "1794744000") == "expected timestamp text, got int, at $.n"


def test_a_timestamp_without_a_zone_refuses_one() -> None:
    expected = "expected timestamp text without a zone, got '2026-11-15T12:00:00Z', at $.n"
    assert value("TIMESTAMP_NTZ", '"2026-11-15T12:00:00Z"') == expected
    assert value("TIMESTAMP_NTZ", '"2026-11-15 12:00"') == datetime(2026, 11, 15, 12)  # noqa: DTZ001


def test_good_rows_survive_bad_neighbours_in_any_mix_of_formats() -> None:
    texts = ["2026-11-15T12:00:00Z", "2026-11-15", "nope", None, "2026-11-15T12:00:00.123456789Z"]

    rows = decode("at TIMESTAMP", batch(json.dumps({"at": text}) for text in texts * 100))

    noon = datetime(2026, 11, 15, 12, tzinfo=UTC)
    expected = [noon, noon.replace(hour=0), None, None, noon.replace(microsecond=123456)]
    assert [row["at"] for row in rows] == expected * 100
    assert sum(row["_reason"] is not None for row in rows) == 100


def test_a_record_of_ten_megabytes_is_decoded() -> None:
    text = "x" * 10_000_000

    [row] = decode("s STRING", batch([json.dumps({"s": text})]))

    assert row["s"] == text


def test_a_reason_shows_no_more_than_a_line_of_the_value() -> None:
    found = value("DATE", '"' + "x" * 1000 + '"')

    assert found == f"expected date, got {'x' * 40 + '…'!r}, at $.n"


def test_text_columns_and_binary_columns_decode_alike() -> None:
    records = ['{"n": 1}', "{", None]
    as_binary = batch(records)
    as_text = as_binary.set_column(0, "value", as_binary.column("value").cast(pa.string()))

    assert decode("n INT", as_text) == decode("n INT", as_binary)


# -- places, headers and other columns ---------------------------------------------------------


def test_lines_are_numbered_within_runs_of_one_origin_across_batches() -> None:
    first = batch(["{}"] * 3, origin=["a", "a", "b"])
    second = batch(["{}"] * 3, origin=["b", "b", "a@4096"])

    rows = decode("n INT", first, batch([]), second, number_lines=True)

    assert [row["_position"] for row in rows] == [1, 2, 1, 2, 3, 1]


def test_positions_and_further_columns_pass_through_unchanged() -> None:
    given_batch = batch(["{}", "{"], origin="topic/0", _arrived_at=pa.array([1, 2]))
    kafka = given_batch.set_column(2, "_position", pa.array([41, 42]))

    rows = decode("n INT", kafka)

    assert [(row["_position"], row["_arrived_at"]) for row in rows] == [(41, 1), (42, 2)]
    assert list(rows[0]) == ["n", "_reason", "_raw", "_origin", "_position", "_arrived_at"]


def test_the_output_schema_is_nullable_throughout() -> None:
    schema = Schema.parse("p STRUCT<a: INT NOT NULL> NOT NULL")

    ddl = decoded_schema(schema, [Field("_arrived_at", Atom.TIMESTAMP)])

    assert ddl == (
        "p STRUCT<a: INT>, _reason STRING, _raw BINARY, _origin STRING, _position BIGINT, "
        "_arrived_at TIMESTAMP"
    )


def test_the_decoder_survives_pickling() -> None:
    run = decoder(Schema.parse("n INT"), format="json")

    again = cloudpickle.loads(cloudpickle.dumps(run))  # type: ignore[no-untyped-call]

    assert [out.num_rows for out in again(iter([batch(["{}"])]))] == [1]


# -- CSV and text ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("1,x", "expected 3 columns, got 2"),
        ("", "empty record"),
        (None, "null record"),
        ("abc,x,", "expected int, got 'abc', in column 'n'"),
        ("1_0,x,", "expected int, got '1_0', in column 'n'"),
        ("3000000000,x,", "3000000000 does not fit INT, in column 'n'"),
        (",x,", "missing required value, in column 'n'"),
        ("1,x,1e400", "1e400 does not fit DOUBLE, in column 'd'"),
        ("1,x,inf", "expected float, got 'inf', in column 'd'"),
        ('1,"x,2', "not CSV: a quoted field is not closed, in column 's'"),
        (
            '1,5" pipe,2',
            "not CSV: a quote inside an unquoted field, in column 's'; "
            "quote the field and double the quote",
        ),
        (
            '1,"5" pipe",2',
            "not CSV: text after a closing quote, in column 's'; "
            "double a quote inside a quoted field",
        ),
        ("1,x,2\n1,x,2", "not CSV: a line break outside quotes, in column 'd'"),
        ('1,x,2,"y', "not CSV: a quoted field is not closed, in column 4"),
        (b"1,\xff,2", "not UTF-8: invalid start byte (byte 2)"),
    ],
)
def test_a_malformed_line_says_what_is_wrong_and_in_which_column(raw: Raw, expected: str) -> None:
    assert reason("n INT NOT NULL, s STRING, d DOUBLE", raw, how="csv") == expected


def test_cells_are_read_by_the_type_of_their_column() -> None:
    ddl = "a INT, b STRING, c DOUBLE, d BOOLEAN, e DATE, f TIMESTAMP, g DECIMAL(5,2), h BINARY"
    line = '-7,"say ""hi"", x",.5,TRUE,2026-11-15,2026-11-15 12:00:00,1.5,aGk='

    [row] = decode(ddl, batch([line]), how="csv")

    assert list(row.values())[:9] == [
        *(-7, 'say "hi", x', 0.5, True, date(2026, 11, 15)),
        *(datetime(2026, 11, 15, 12, tzinfo=UTC), Number("1.50"), b"hi", None),
    ]


def test_empty_cells_and_the_null_value_are_null() -> None:
    options = CsvOptions(sep=";", quote="'", escape="\\", null_value="NULL")

    rows = decode("s STRING, n INT", batch(["NULL;", r"'a\';';1"]), how="csv", options=options)

    assert [(row["s"], row["n"]) for row in rows] == [(None, None), ("a';", 1)]


def test_a_cell_of_a_megabyte_is_read() -> None:
    [row] = decode("s STRING", batch(["x" * 1_000_000]), how="csv")

    assert len(row["s"]) == 1_000_000


def test_the_first_line_of_each_file_is_its_header_and_of_a_later_block_is_not() -> None:
    lines = ["\ufeffa,b", "1,2", "a,b", "3,4", "5,6"]
    whole = batch(lines, origin=["x", "x", "y@0", "y@0", "y@64"])

    rows = decode("a INT, b INT", whole, how="csv", options=CsvOptions(header=True))

    assert [row["_reason"] for row in rows] == [NO_RECORD, None, NO_RECORD, None, None]
    assert [row["a"] for row in rows] == [None, 1, None, 3, 5]


def test_a_header_with_no_column_of_the_schema_condemns_its_file_and_no_other() -> None:
    first = batch(["d,c", "1,2"], origin="x")
    second = batch(["3,4", "a,b", "5,6"], origin=["x", "y", "y"])

    rows = decode("a INT, b INT", first, second, how="csv", options=CsvOptions(header=True))

    fault = "header says d, c; the schema says a, b"
    assert [row["_reason"] for row in rows] == [fault, fault, fault, NO_RECORD, None]
    assert [row["_raw"] for row in rows[:3]] == [b"d,c", b"1,2", b"3,4"]


def test_text_is_taken_as_it_is_into_the_only_column() -> None:
    rows = decode("line STRING", batch(["a, b", "", None, b"\xff"]), how="text")

    assert [row["line"] for row in rows] == ["a, b", "", None, None]
    assert [row["_reason"] for row in rows] == [
        *(None, None, "null record", "not UTF-8: invalid start byte (byte 0)"),
    ]


def test_a_format_that_cannot_carry_the_schema_is_refused_at_once() -> None:
    with pytest.raises(SchemaError, match="text has one STRING column"):
        decoder(Schema.parse("a STRING, b STRING"), format="text")
    with pytest.raises(SchemaError, match="CSV column 'a' is ARRAY<INT>"):
        decoder(Schema.parse("a ARRAY<INT>"), format="csv")
    with pytest.raises(SchemaError, match="sep='::' is not one character"):
        decoder(Schema.parse("a INT"), format="csv", options=CsvOptions(sep="::"))


# -- properties --------------------------------------------------------------------------------

MIXED = Schema.parse(
    "s STRING, n TINYINT NOT NULL, x DOUBLE, d DECIMAL(5,2), at TIMESTAMP, day DATE, b BINARY,"
    "ok BOOLEAN, a ARRAY<TIMESTAMP>, m MAP<STRING, DATE>, p STRUCT<lat: FLOAT, lon: FLOAT>"
)
FLAT = Schema.parse("s STRING, n TINYINT NOT NULL, x DOUBLE, d DECIMAL(5,2), at TIMESTAMP")
MUTANTS = [
    b'{"s":"a","n":1,"x":1.5,"d":"1.25","at":"2026-11-15T12:00:00Z","day":"2026-11-15"}',
    b'{"n":1,"b":"aGk=","ok":true,"a":["2026-11-15",null],"m":{"k":"2026-11-15"}}',
    b'{"n":1,"p":{"lat":1,"lon":2.5},"other":[[]]}',
    b"a,1,1.5,1.25,2026-11-15T12:00:00.123Z",
    b'"a ""b""",-1,1e3,-0.5,2026-11-15 12:00:00+01:00',
]


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    raw = bytearray(draw(st.sampled_from(MUTANTS)))
    for at, byte in draw(
        st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=2)), max_size=3)
    ):
        raw[at : at + 1] = byte
    return bytes(raw)


def fuzzed(random: Random) -> bytes:
    raw = bytearray(random.choice(MUTANTS))
    for _ in range(random.randrange(4)):
        at = random.randrange(len(raw) + 1)
        raw[at : at + random.randrange(3)] = random.choice(
            [random.randbytes(1), b"", b'"', b",", b"9", b"-", b"\\", b"null", b"1e999", b"[{"]
        )
    return bytes(raw)


@settings(max_examples=60, deadline=None)
@given(
    drawn=st.lists(st.none() | st.binary(max_size=30) | mutants()),
    seed=st.integers(),
    how=st.sampled_from(["json", "csv", "text"]),
)
def test_any_bytes_come_out_row_for_row_right_or_with_their_exact_bytes(
    drawn: list[bytes | None], seed: int, how: Format
) -> None:
    schema = {"json": MIXED, "csv": FLAT, "text": Schema.parse("line STRING")}[how]
    random = Random(seed)
    raws = [*drawn, *(fuzzed(random) for _ in range(2000))]

    rows = decode(schema, batch(raws), how=how, number_lines=True)

    assert [row["_position"] for row in rows] == list(range(1, len(raws) + 1))
    for raw, row in zip(raws, rows, strict=True):
        assert row["_raw"] == (None if row["_reason"] is None else raw)
        assert row["_reason"] is None or all(row[name] is None for name in schema.names)
        assert row["_reason"] != "not as the schema says"


def test_a_field_that_is_there_twice_is_named_if_one_of_them_does_not_fit() -> None:
    [row] = decode(MIXED, batch([b'{"n": 1, "a": true, "a": []}']))

    assert row["_reason"] == "field 'a' is there twice, and not each fits"


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.none() | mutants(), min_size=1, max_size=20))
def test_a_verdict_does_not_depend_on_the_neighbours(raws: list[bytes | None]) -> None:
    together = decode(MIXED, batch(raws))
    alone = [row for raw in raws for row in decode(MIXED, batch([raw]))]

    assert together == alone


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"[09]?[0-9]{3}-[01][0-9]-[0-3][0-9]([T ][0-9:.+Z-]{0,20})?", fullmatch=True))
def test_the_fast_way_and_the_sure_way_read_the_same_timestamps(text: str) -> None:
    for kind in (Atom.TIMESTAMP, Atom.TIMESTAMP_NTZ, Atom.DATE):
        whole, one = ways(kind)
        try:
            fast = whole([text])
        except UNFIT:
            continue
        assert fast == pa.array([one(text)], fast.type)


def same(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return values.map(lambda v: (v, v))


ATOMS: dict[Atom, st.SearchStrategy[tuple[Any, Any]]] = {
    Atom.STRING: same(st.text()),
    Atom.BOOLEAN: same(st.booleans()),
    Atom.TINYINT: same(st.integers(-(2**7), 2**7 - 1)),
    Atom.SMALLINT: same(st.integers(-(2**15), 2**15 - 1)),
    Atom.INT: same(st.integers(-(2**31), 2**31 - 1)),
    Atom.BIGINT: same(st.integers(-(2**63), 2**63 - 1)),
    Atom.FLOAT: same(st.floats(width=32, allow_nan=False, allow_infinity=False)),
    Atom.DOUBLE: same(st.floats(allow_nan=False, allow_infinity=False)),
    Atom.DATE: st.dates().map(lambda d: (d.isoformat(), d)),
    Atom.TIMESTAMP: st.datetimes(timezones=st.just(UTC)).map(lambda t: (t.isoformat(), t)),
    Atom.TIMESTAMP_NTZ: st.datetimes().map(lambda t: (t.isoformat(), t)),
    Atom.BINARY: st.binary().map(lambda b: (base64.b64encode(b).decode(), b)),
}


def examples(kind: Type) -> st.SearchStrategy[tuple[Any, Any]]:
    """Draw a JSON value and what it decodes to."""
    match kind:
        case Atom():
            return ATOMS[kind]
        case Decimal(p, s):
            digits = st.integers(-(10**p) + 1, 10**p - 1)
            return digits.map(lambda n: (str(n), Number(n)) if not s else _scaled(n, s))
        case Array(element):
            lists = st.lists(nullable(element), max_size=3)
            return lists.map(lambda vs: ([v for v, _ in vs], [v for _, v in vs]))
        case Map(of):
            return st.dictionaries(st.text(), nullable(of), max_size=3).map(unzip)
        case Struct(fields):
            return records(fields)


def _scaled(n: int, scale: int) -> tuple[str, Number]:
    exact = Number(f"{n}e-{scale}")
    return f"{exact:f}", exact


def unzip(pairs: dict[str, tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {k: v for k, (v, _) in pairs.items()}, {k: v for k, (_, v) in pairs.items()}


def nullable(kind: Type) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.just((None, None)) | examples(kind)


def records(fields: tuple[Field, ...]) -> st.SearchStrategy[tuple[Any, Any]]:
    drawn = {f.name: nullable(f.type) if f.nullable else examples(f.type) for f in fields}
    return st.fixed_dictionaries(drawn).map(unzip)


leaves: st.SearchStrategy[Type] = st.sampled_from(Atom) | st.integers(1, 38).flatmap(
    lambda p: st.integers(0, p).map(lambda s: Decimal(p, s))
)


def fields_of(types: st.SearchStrategy[Type]) -> st.SearchStrategy[tuple[Field, ...]]:
    drawn = st.lists(st.tuples(types, st.booleans()), min_size=1, max_size=4)
    return drawn.map(lambda ts: tuple(Field(f"c {i}", *t) for i, t in enumerate(ts)))


types: st.SearchStrategy[Type] = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Array, inner) | st.builds(Map, inner) | st.builds(Struct, fields_of(inner))
    ),
    max_leaves=5,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(fields_of(types).flatmap(lambda f: st.tuples(st.just(f), st.lists(records(f), max_size=8))))
def test_records_written_by_a_schema_decode_to_equal_values(
    drawn: tuple[tuple[Field, ...], list[tuple[Any, Any]]],
) -> None:
    fields, pairs = drawn

    rows = decode(Schema(fields), batch(json.dumps(written) for written, _ in pairs))

    assert [row["_reason"] for row in rows] == [None] * len(pairs)
    assert [{f.name: row[f.name] for f in fields} for row in rows] == [read for _, read in pairs]


def test_the_greatest_float_fits_and_the_next_does_not() -> None:
    greatest = struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]

    assert value("FLOAT", repr(greatest)) == greatest
    assert "does not fit FLOAT" in value(
        "FLOAT", repr(math.nextafter(greatest * 1.0000001, math.inf))
    )


# -- field and column -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "raw"),
    [("json", '{"@timestamp": "2026-01-01", "n": 1}'), ("csv", "2026-01-01,1")],
)
def test_a_field_becomes_the_column_that_it_is_renamed_to(how: Format, raw: str) -> None:
    record = RecordOptions(rename={"@timestamp": "at"})

    [row] = decode("at DATE, n INT", batch([raw]), how=how, record=record)

    assert (row["at"], row["n"], row["_reason"]) == (date(2026, 1, 1), 1, None)


def test_a_reason_names_the_field_as_the_record_does() -> None:
    record = RecordOptions(rename={"@timestamp": "at"})

    found = reason("at DATE NOT NULL", '{"at": "2026-01-01"}', record=record)

    assert found == "missing required field, at $.@timestamp"


# -- formats of times -----------------------------------------------------------------------------

LOGGED = RecordOptions(formats={"at": ["dd/MMM/yyyy:HH:mm:ss Z", "epoch_ms"]})
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("how", "raws"),
    [
        (
            "json",
            [
                '{"at": "01/May/2026:14:00:00 +0200", "n": 1}',
                '{"at": 1777636800000, "n": 2}',
                '{"at": "1777636800000", "n": 3}',
                '{"at": 1777636800000.5, "n": 4}',
                '{"at": "2026-05-01", "n": 5}',
                '{"at": true, "n": 6}',
                '{"at": null, "n": 7}',
                '{"at": 1, "n": "8"}',
            ],
        ),
        (
            "csv",
            [
                "01/May/2026:14:00:00 +0200,1",
                "1777636800000,2",
                "1777636800000,3",
                "1777636800000.5,4",
                "2026-05-01,5",
                "true,6",
                ",7",
                "1,x",
            ],
        ),
    ],
)
def test_times_are_read_by_the_formats_of_their_column(how: Format, raws: list[str]) -> None:
    found = decode("at TIMESTAMP, n INT", batch([*raws]), how=how, record=LOGGED)

    at = [NOON, NOON, NOON, NOON + timedelta(microseconds=500), None, None, None, None]
    assert [row["at"] for row in found] == at
    reasons = [row["_reason"] for row in found]
    assert reasons[:4] == [None] * 4
    wanted = "expected timestamp as 'dd/MMM/yyyy:HH:mm:ss Z' or epoch_ms, got '2026-05-01'"
    assert reasons[4].startswith(wanted)
    assert reasons[5] is not None
    assert reasons[6] is None
    assert "n" in reasons[7]
