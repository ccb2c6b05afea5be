from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from typing import Any

import pytest
from pyspark import cloudpickle
from tests.avro import UUID_TEXT, array, decode, long, record, schemas

from millstream.errors import SchemaError
from millstream.landing.decode import decoder
from millstream.model.avro.encode import zigzag
from millstream.model.schema import Schema

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENDS = "the record ends too early, at $.n"
ID = "00000000-0000-0000-0000-aaaaaaaaaaaa"


def value(kind: str, avro: Any, raw: bytes) -> Any:
    """Decode one value; a malformed one gives its reason."""
    [row] = decode(f"n {kind}", schemas(record(("n", avro))), [raw])
    assert row["_raw"] == (None if row["_reason"] is None else raw)
    return row["n"] if row["_reason"] is None else row["_reason"]


# -- what a value becomes ------------------------------------------------------------------------

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
UUID_BYTES = {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}
SUIT = {"type": "enum", "name": "Suit", "symbols": ["SPADES", "HEARTS"]}
PAIR = record(("x", "int"), ("s", "string"), name="Pair")
NODE = record(("n", "int"), ("next", ["null", "Node"]), name="Node")


@pytest.mark.parametrize(
    ("kind", "avro", "raw", "expected"),
    [
        ("BOOLEAN", "boolean", b"\1", True),
        ("BOOLEAN", "boolean", b"\7", "expected boolean, got byte 7, at $.n"),
        ("INT", "int", b"", ENDS),
        ("INT", "int", b"\x80", ENDS),
        ("INT", "int", b"\2\2", "1 byte left over after the record"),
        ("INT", "int", b"\2\2\2", "2 bytes left over after the record"),
        ("INT", "int", zigzag(2**31), "2147483648 does not fit int, at $.n"),
        ("INT", {"type": "int", "logicalType": "date"}, b"\2", 1),
        ("INT", {"type": "int", "logicalType": "shoe-size"}, b"\2", 1),
        ("TINYINT", "int", zigzag(-128), -128),
        ("TINYINT", "int", zigzag(128), "128 does not fit TINYINT, at $.n"),
        ("SMALLINT", "int", zigzag(2**15), "32768 does not fit SMALLINT, at $.n"),
        ("BIGINT", "int", zigzag(-5), -5),
        ("BIGINT", "long", zigzag(-(2**63)), -(2**63)),
        ("BIGINT", "long", b"\xff" * 9 + b"\2", "expected long, got a greater number, at $.n"),
        ("BIGINT", "long", b"\xff" * 99, "expected long, got a greater number, at $.n"),
        ("DOUBLE", "int", zigzag(3), 3.0),
        ("DOUBLE", "long", zigzag(3), 3.0),
        ("DOUBLE", "float", b"\0\0\xc0\x3f", 1.5),
        ("DOUBLE", "double", b"\0\0", ENDS),
        ("DOUBLE", "double", b"\0\0\0\0\0\0\xf0\x7f", float("inf")),
        ("STRING", "string", b"\4\xc3\xa9", "é"),
        ("STRING", "string", b"\2\xff", "not UTF-8: invalid start byte, at $.n"),
        ("STRING", "string", b"\1", "the length -1 is negative, at $.n"),
        ("STRING", "string", b"\x7e", ENDS),
        ("STRING", "string", zigzag(2**62), ENDS),
        ("STRING", "bytes", b"\2a", "a"),
        ("BINARY", "string", b"\2\xff", b"\xff"),
        ("BINARY", "bytes", b"\4\0\xff", b"\0\xff"),
        ("BINARY", {"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        ("BINARY", {"type": "fixed", "name": "F", "size": 2}, b"a", ENDS),
        ("STRING", SUIT, b"\2", "HEARTS"),
        ("STRING", SUIT, b"\1", "enum Suit has no symbol -1, at $.n"),
        ("STRING", SUIT, b"\4", "enum Suit has no symbol 2, at $.n"),
        ("DATE", {"type": "int", "logicalType": "date"}, zigzag(-1), date(1969, 12, 31)),
        (
            *("DATE", {"type": "int", "logicalType": "date"}, zigzag(2_932_897)),
            "2932897 does not fit DATE, at $.n",
        ),
        ("TIMESTAMP", long("timestamp-millis"), zigzag(1), EPOCH + timedelta(milliseconds=1)),
        ("TIMESTAMP", long("timestamp-micros"), zigzag(-1), EPOCH - timedelta(microseconds=1)),
        ("TIMESTAMP", long("timestamp-nanos"), zigzag(-1), EPOCH - timedelta(microseconds=1)),
        (
            *("TIMESTAMP", long("timestamp-millis"), zigzag(2**62)),
            "4611686018427387904000 does not fit TIMESTAMP, at $.n",
        ),
        (
            *("TIMESTAMP_NTZ", long("local-timestamp-millis"), zigzag(1000)),
            datetime(1970, 1, 1, 0, 0, 1),  # noqa: DTZ001
        ),
        ("BIGINT", long("timestamp-millis"), zigzag(7), 7),
        ("DECIMAL(5,2)", DECIMAL, b"\4\x04\xd2", Number("12.34")),
        ("DECIMAL(9,4)", DECIMAL, b"\2\xff", Number("-0.0100")),
        ("DECIMAL(5,2)", DECIMAL, b"\0", Number("0.00")),
        ("DECIMAL(5,2)", DECIMAL, b"\6\x01\x86\xa0", "1000.00 does not fit DECIMAL(5,2), at $.n"),
        (
            *("DECIMAL(5,2)", DECIMAL, zigzag(99) + b"\x7f" * 99),
            "a number of 791 bits does not fit DECIMAL(5,2), at $.n",
        ),
        ("STRING", UUID_TEXT, b"\x48" + ID.encode(), ID),
        ("STRING", UUID_TEXT, b"\4hi", "expected uuid, got 'hi', at $.n"),
        ("STRING", UUID_BYTES, bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ("INT", ["null", "int"], b"\0", None),
        ("INT", ["null", "int"], b"\2\2", 1),
        ("INT", ["null", "int"], b"\1\2", "the union has no branch -1, at $.n"),
        ("INT", ["null", "int"], b"\4\2", "the union has no branch 2, at $.n"),
        ("INT NOT NULL", ["null", "int"], b"\0", "expected INT, got null, at $.n"),
        ("BIGINT", ["int", "long", "string"], b"\2\2", 1),
        ("BIGINT", ["int", "long", "string"], b"\4\2a", "expected BIGINT, got string, at $.n"),
        ("INT", "null", b"", None),
        ("ARRAY<INT>", array("int"), b"\4\2\4\0", [1, 2]),
        ("ARRAY<INT>", array("int"), b"\3\4\2\4\2\6\0", [1, 2, 3]),
        (
            *("ARRAY<INT>", array("int"), b"\x7f\2\2"),
            "64 items do not fit into the record, at $.n[0]",
        ),
        (
            *("ARRAY<TINYINT>", array("int"), b"\4\2\x80\2\0"),
            "128 does not fit TINYINT, at $.n[1]",
        ),
        (
            *("ARRAY<INT>", array("null"), zigzag(2**40)),
            "1099511627776 items do not fit into the record, at $.n[0]",
        ),
        ("ARRAY<INT>", array("null"), b"\6\0", [None, None, None]),
        ("MAP<STRING, INT>", {"type": "map", "values": "int"}, b"\2\2a\2\0", {"a": 1}),
        (
            *("MAP<STRING, TINYINT>", {"type": "map", "values": "int"}, b"\2\2a\x80\2\0"),
            "128 does not fit TINYINT, at $.n.a",
        ),
        ("STRUCT<s: STRING>", PAIR, b"\2\2a", {"s": "a"}),
        (
            *("STRUCT<s: STRING>", PAIR, b"\2\x7e"),
            "the record ends too early, at $.n.s",
        ),
        (
            *("STRUCT<n: INT, next: STRUCT<n: INT>>", NODE, b"\2\2\4\0"),
            {"n": 1, "next": {"n": 2}},
        ),
        (
            *("STRUCT<n: INT>", NODE, b"\2" + b"\2\2" * 100_000 + b"\0"),
            "nested too deeply",
        ),
    ],
)
def test_each_type_gives_its_own_values_and_refuses_all_other_bytes(
    kind: str, avro: Any, raw: bytes, expected: Any
) -> None:
    assert value(kind, avro, raw) == expected


def test_a_null_record_is_malformed_and_an_empty_one_is_right_if_it_has_no_bytes() -> None:
    assert [r["_reason"] for r in decode("n INT", schemas(record(("n", "null"))), [b"", None])] == [
        *(None, "null record"),
    ]


def test_a_malformed_record_is_null_in_all_columns_and_keeps_its_bytes() -> None:
    good, bad = b"\2a\2", b"\2b\x80\2"

    rows = decode(
        "s STRING, n TINYINT", schemas(record(("s", "string"), ("n", "int"))), [good, bad, good]
    )

    assert [(row["s"], row["n"], row["_raw"]) for row in rows] == [
        *(("a", 1, None), (None, None, bad), ("a", 1, None)),
    ]


# -- headers -------------------------------------------------------------------------------------

TWO = schemas(record(("n", "int")), record(("s", "string"), ("n", "long")), first_id=7)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\0\0\0\0\7\2", 1),
        (b"\0\0\0\0\x08\2a\4", 2),
        (b"\0\0\0\0\x09\2", "no schema is given for id 9, only for 7, 8"),
        (b"\0\0\0", "the record ends within its header of 5 bytes"),
        (b"\0\0\0\0\7", ENDS),
        (b"\0\0\0\0\7\2\0", "1 byte left over after the record"),
        (b'{"n": 1}', "expected a header that begins with byte 0, got byte 123"),
        (b"", "empty record"),
        (None, "null record"),
    ],
)
def test_records_with_a_header_are_read_by_the_schema_of_their_id(raw: Any, expected: Any) -> None:
    [row] = decode("n BIGINT", TWO, [raw])

    assert (row["_reason"] or row["n"]) == expected


def test_the_decoder_survives_pickling() -> None:
    run = decoder(Schema.parse("n BIGINT"), format="avro", options=TWO)

    again = cloudpickle.loads(cloudpickle.dumps(run))  # type: ignore[no-untyped-call]

    assert list(again(iter([]))) == []


def test_a_schema_that_cannot_give_the_columns_is_refused_at_once() -> None:
    with pytest.raises(SchemaError, match="column 'x' cannot be read from Avro"):
        decoder(Schema.parse("x INT"), format="avro", options=TWO)


def test_a_default_that_does_not_fit_its_column_is_refused_at_once() -> None:
    reader = record(("n", "int"))
    reader["fields"][0]["default"] = 300

    with pytest.raises(SchemaError, match=r"300 does not fit TINYINT, at \$\.default"):
        decode("n TINYINT", schemas(record(), reader=reader), [])


# -- a reader's schema ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "was", "raw", "becomes", "expected"),
    [
        ("BIGINT", "int", b"\2", "long", 1),
        ("DOUBLE", "int", zigzag(16_777_217), "float", 16_777_216.0),
        ("DOUBLE", "long", zigzag(16_777_217), "double", 16_777_217.0),
        ("BINARY", "string", b"\2a", "bytes", b"a"),
        ("STRING", "bytes", b"\2a", "string", "a"),
        ("INT", "int", b"\2", ["null", "int"], 1),
        ("BIGINT", "int", b"\2", ["null", "long"], 1),
        ("BIGINT", ["null", "int", "string"], b"\0", ["null", "long"], None),
        (
            *("BIGINT", ["null", "int", "string"], b"\4\2a", ["null", "long"]),
            "expected BIGINT, got string, at $.n",
        ),
        ("INT", ["int", "null"], b"\2", "int", "expected INT, got null, at $.n"),
        ("STRING", SUIT, b"\2", {**SUIT, "symbols": ["HEARTS"]}, "HEARTS"),
        (
            *("STRING", SUIT, b"\0", {**SUIT, "symbols": ["HEARTS"]}),
            "symbol 0 of enum Suit is unknown to the reader, at $.n",
        ),
        ("STRING", SUIT, b"\0", {**SUIT, "symbols": ["X"], "default": "X"}, "X"),
        ("TIMESTAMP", "long", b"\2", long("timestamp-millis"), EPOCH + timedelta(milliseconds=1)),
        ("ARRAY<BIGINT>", array("int"), b"\2\2\0", None, [1]),
        ("MAP<STRING, DOUBLE>", {"type": "map", "values": "int"}, b"\2\2a\2\0", None, {"a": 1.0}),
    ],
)
def test_values_are_promoted_as_avro_has_it(
    kind: str, was: Any, raw: bytes, becomes: Any, expected: Any
) -> None:
    given = schemas(record(("n", was)), reader=becomes and record(("n", becomes)))

    [row] = decode(f"n {kind}", given, [raw])

    assert (row["_reason"] or row["n"]) == expected


@pytest.mark.parametrize(
    ("kind", "avro", "default", "expected"),
    [
        ("INT", "int", 7, 7),
        ("INT", ["null", "int"], None, None),
        ("INT", ["int", "null"], 7, 7),
        ("DOUBLE", "double", 1, 1.0),
        ("STRING", "string", "é", "é"),
        ("BINARY", "bytes", "\u00ff", b"\xff"),
        ("BINARY", {"type": "fixed", "name": "F", "size": 2}, "a\u0000", b"a\0"),
        ("STRING", SUIT, "HEARTS", "HEARTS"),
        ("DECIMAL(5,2)", DECIMAL, "\u0004\u00d2", Number("12.34")),
        ("DATE", {"type": "int", "logicalType": "date"}, -1, date(1969, 12, 31)),
        ("TIMESTAMP", long("timestamp-millis"), 0, EPOCH),
        ("ARRAY<INT>", array("int"), [1, 2], [1, 2]),
        ("ARRAY<INT>", array("int"), [], []),
        ("MAP<STRING, INT>", {"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
        ("BOOLEAN", "boolean", True, True),
        ("STRUCT<s: STRING>", record(("s", "string"), name="Inner"), {"s": "x"}, {"s": "x"}),
    ],
)
def test_what_records_lack_has_the_reader_s_default(
    kind: str, avro: Any, default: Any, expected: Any
) -> None:
    reader = record(("n", avro), ("m", "int"))
    reader["fields"][0]["default"] = default

    [row] = decode(f"m INT, n {kind}", schemas(record(("m", "int")), reader=reader), [b"\2"])

    assert (row["_reason"], row["m"], row["n"]) == (None, 1, expected)


def test_fields_are_found_by_the_reader_s_aliases_in_any_order() -> None:
    writer = record(("old", "int"), ("gone", "string"), ("s", "string"), name="a.Was")
    reader = record(("s", "string"), ("n", "long"), name="b.Is")
    reader |= {"aliases": ["a.Was"]}
    reader["fields"][1]["aliases"] = ["old"]

    [row] = decode("n BIGINT, s STRING", schemas(writer, reader=reader), [b"\2\2x\2y"])

    assert (row["_reason"], row["n"], row["s"]) == (None, 1, "y")
