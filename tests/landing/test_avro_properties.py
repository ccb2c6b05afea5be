from __future__ import annotations

import io
import string
from datetime import UTC, datetime
from decimal import Decimal as Number
from random import Random
from typing import Any, NamedTuple

import fastavro
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.avro import UUID_TEXT, decode, long, record, schemas, written

from millstream.model.data_type import Array, Atom, Decimal, Field, Map, Struct, Type
from millstream.model.schema import Schema


class Shape(NamedTuple):
    """An Avro type, a type it can be declared as, and values: as written and as read."""

    avro: Any
    kind: Type
    values: st.SearchStrategy[tuple[Any, Any]]


def same(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return values.map(lambda v: (v, v))


def milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
MOMENTS = st.datetimes(timezones=st.just(UTC))
LEAVES = [
    Shape("boolean", Atom.BOOLEAN, same(st.booleans())),
    Shape("int", Atom.INT, same(INTS)),
    Shape("int", Atom.BIGINT, same(INTS)),
    Shape("int", Atom.SMALLINT, same(st.integers(-(2**15), 2**15 - 1))),
    Shape("int", Atom.DOUBLE, INTS.map(lambda n: (n, float(n)))),
    Shape("long", Atom.BIGINT, same(LONGS)),
    Shape("float", Atom.FLOAT, same(st.floats(width=32, allow_nan=False))),
    Shape("double", Atom.DOUBLE, same(st.floats(allow_nan=False))),
    Shape("bytes", Atom.BINARY, same(st.binary())),
    Shape("string", Atom.STRING, same(st.text())),
    Shape("string", Atom.BINARY, st.text().map(lambda s: (s, s.encode()))),
    Shape(UUID_TEXT, Atom.STRING, st.uuids().map(lambda u: (str(u), str(u)))),
    Shape({"type": "int", "logicalType": "date"}, Atom.DATE, same(st.dates())),
    Shape(long("timestamp-micros"), Atom.TIMESTAMP, same(MOMENTS)),
    Shape(long("timestamp-millis"), Atom.TIMESTAMP, same(MOMENTS.map(milliseconds))),
    Shape(long("local-timestamp-micros"), Atom.TIMESTAMP_NTZ, same(st.datetimes())),
]


@st.composite
def decimals(draw: st.DrawFn, path: str) -> Shape:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
    fixed = {"type": "fixed", "name": path, "size": 17}
    base: Any = draw(st.sampled_from([{"type": "bytes"}, fixed]))
    digits = st.integers(-(10**precision) + 1, 10**precision - 1)
    values = same(digits.map(lambda n: Number(f"{n}e-{scale}")))
    return Shape({**base, **logical}, Decimal(precision, scale), values)


@st.composite
def shapes(draw: st.DrawFn, path: str, depth: int = 2) -> Shape:
    """Draw a type; names are made of the path, since Avro's must differ."""
    ways = ["leaf"] * 3 + ["decimal", "enum", "fixed", "nullable", "union"]
    way = draw(st.sampled_from([*ways, *(["array", "map", "record"] if depth > 0 else [])]))
    if way in ("leaf", "decimal"):
        plain: Shape = draw(st.sampled_from(LEAVES) if way == "leaf" else decimals(path))
        return plain
    avro: dict[str, Any]
    if way == "enum":
        symbols = draw(st.lists(st.sampled_from(string.ascii_letters), min_size=1, unique=True))
        avro = {"type": "enum", "name": path, "symbols": symbols}
        return Shape(avro, Atom.STRING, same(st.sampled_from(symbols)))
    if way == "fixed":
        size = draw(st.integers(1, 20))
        avro = {"type": "fixed", "name": path, "size": size}
        return Shape(avro, Atom.BINARY, same(st.binary(min_size=size, max_size=size)))
    if way == "union":
        return Shape(["null", "int", "long"], Atom.BIGINT, same(st.none() | LONGS))
    found: Shape = draw(compounds(path, depth, way))
    return found


@st.composite
def compounds(draw: st.DrawFn, path: str, depth: int, way: str) -> Shape:
    if way == "record":
        return draw(records(path, depth - 1))
    inner = draw(shapes(f"{path}_", depth - 1))
    if way == "nullable":
        if isinstance(inner.avro, list):
            return inner
        null_first = draw(st.booleans())
        avro = ["null", inner.avro] if null_first else [inner.avro, "null"]
        return Shape(avro, inner.kind, st.just((None, None)) | inner.values)
    if way == "array":
        drawn = st.lists(inner.values, max_size=4)
        lists = drawn.map(lambda vs: ([v for v, _ in vs], [v for _, v in vs]))
        return Shape({"type": "array", "items": inner.avro}, Array(inner.kind), lists)
    keyed = st.dictionaries(st.text(max_size=3), inner.values, max_size=4)
    dicts = keyed.map(
        lambda d: ({k: v for k, (v, _) in d.items()}, {k: v for k, (_, v) in d.items()})
    )
    return Shape({"type": "map", "values": inner.avro}, Map(inner.kind), dicts)


@st.composite
def records(draw: st.DrawFn, path: str, depth: int) -> Shape:
    """Draw a record; some fields are declared as columns, in any order, and some are not."""
    count = draw(st.integers(1, 5))
    parts = {f"f{i}": draw(shapes(f"{path}_{i}", depth)) for i in range(count)}
    wanted = draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, unique=True))
    avro = record(*((name, part.avro) for name, part in parts.items()), name=path)
    kind = Struct(tuple(Field(name, parts[name].kind) for name in wanted))
    values = st.fixed_dictionaries({name: part.values for name, part in parts.items()}).map(
        lambda row: ({n: v for n, (v, _) in row.items()}, {n: row[n][1] for n in wanted})
    )
    return Shape(avro, kind, values)


@settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
@given(records("R", 2).flatmap(lambda s: st.tuples(st.just(s), st.lists(s.values, max_size=6))))
def test_records_that_another_library_wrote_come_out_equal(
    drawn: tuple[Shape, list[tuple[Any, Any]]],
) -> None:
    shape, rows = drawn
    assert isinstance(shape.kind, Struct)
    raws = written(shape.avro, *(row for row, _ in rows))

    bare = decode(Schema(shape.kind.fields), schemas(shape.avro), raws)
    headed = decode(
        *(Schema(shape.kind.fields), schemas(shape.avro, reader=shape.avro, first_id=258)),
        [b"\0\0\0\1\2" + raw for raw in raws],
    )

    assert [row["_reason"] for row in bare] == [None] * len(rows)
    names = [field.name for field in shape.kind.fields]
    assert [{name: row[name] for name in names} for row in bare] == [read for _, read in rows]
    assert headed == bare


PLAIN = record(
    ("s", "string"),
    ("n", "int"),
    ("x", ["null", "double"]),
    ("skipped", {"type": "array", "items": ["null", "string", record(("k", "long"), name="K")]}),
    ("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}),
    ("a", {"type": "array", "items": "long"}),
    ("m", {"type": "map", "values": "boolean"}),
    ("p", record(("lat", "float"), ("tag", ["string", "null"]), name="P")),
)
COLUMNS = (
    "s STRING, n INT, x DOUBLE, e STRING, a ARRAY<BIGINT>, m MAP<STRING, BOOLEAN>, "
    "p STRUCT<lat: FLOAT, tag: STRING>"
)
RIGHT = written(
    PLAIN,
    {"s": "abc", "n": 1, "x": 1.5, "skipped": [None, "x", {"k": 300}], "e": "B"}
    | {"a": [1, 2**40], "m": {"k": True}, "p": {"lat": 1.5, "tag": "t"}},
    {"s": "", "n": -70_000, "x": None, "skipped": [], "e": "A"}
    | {"a": [], "m": {}, "p": {"lat": 0.0, "tag": None}},
)
PARSED = fastavro.parse_schema(PLAIN)


def damaged(random: Random) -> bytes:
    raw = bytearray(random.choice(RIGHT))
    for _ in range(random.randrange(4)):
        at = random.randrange(len(raw) + 1)
        raw[at : at + random.randrange(3)] = random.randbytes(random.randrange(3))
    return bytes(raw)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=30)), st.integers())
def test_any_bytes_come_out_row_for_row_right_or_with_their_exact_bytes(
    drawn: list[bytes | None], seed: int
) -> None:
    random = Random(seed)
    raws = [*drawn, *(damaged(random) for _ in range(1000))]
    names = Schema.parse(COLUMNS).names

    rows = decode(COLUMNS, schemas(PLAIN), raws)

    assert [row["_position"] for row in rows] == list(range(len(raws)))
    for raw, row in zip(raws, rows, strict=True):
        assert row["_raw"] == (None if row["_reason"] is None else raw)
        assert row["_reason"] is None or all(row[name] is None for name in names)
        assert row["_reason"] != "not as the schema says"
        if row["_reason"] is None:
            stream = io.BytesIO(raw or b"")
            expected: Any = fastavro.schemaless_reader(stream, PARSED, None)
            assert repr({n: row[n] for n in names}) == repr({n: expected[n] for n in names})
            assert stream.read() == b""


@settings(max_examples=20, deadline=None)
@given(st.integers())
def test_a_verdict_does_not_depend_on_the_neighbours(seed: int) -> None:
    random = Random(seed)
    raws = [damaged(random) for _ in range(20)]

    together = decode(COLUMNS, schemas(PLAIN), raws)
    alone = [row for raw in raws for row in decode(COLUMNS, schemas(PLAIN), [raw])]

    assert [{**row, "_position": 0} for row in together] == alone
