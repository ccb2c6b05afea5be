import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pyspark.sql.types import StructType

from millstream.errors import SchemaError
from millstream.model.data_type import Array, Atom, Decimal, Field, Map, Struct, Type
from millstream.model.schema import Schema


def refusal(text: str) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text)
    return caught.value


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1).filter(
    lambda name: not name.startswith("_")
)
leaves: st.SearchStrategy[Type] = st.sampled_from(Atom) | st.integers(1, 38).flatmap(
    lambda p: st.integers(0, p).map(lambda s: Decimal(p, s))
)


def fields_of(types: st.SearchStrategy[Type]) -> st.SearchStrategy[tuple[Field, ...]]:
    return st.lists(
        st.builds(Field, names, types, st.booleans()),
        min_size=1,
        max_size=4,
        unique_by=lambda field: field.name.lower(),
    ).map(tuple)


types: st.SearchStrategy[Type] = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Array, inner) | st.builds(Map, inner) | st.builds(Struct, fields_of(inner))
    ),
    max_leaves=6,
)
schemas = st.builds(Schema, fields_of(types))


@given(schemas)
def test_a_schema_written_as_ddl_reads_back_equal(schema: Schema) -> None:
    assert Schema.parse(schema.to_ddl()) == schema


@given(schemas)
def test_a_schema_given_as_a_struct_type_reads_back_equal(schema: Schema) -> None:
    spark = StructType.fromJson(json.loads(schema.to_json()))

    assert Schema.parse(spark) == schema


@given(schemas)
def test_json_is_exactly_what_spark_writes(schema: Schema) -> None:
    written = json.loads(schema.to_json())

    assert StructType.fromJson(written).jsonValue() == written


@given(st.text(alphabet="abINT STRUCARYMP<>(),:`'0 \n", max_size=40))
def test_any_text_is_a_schema_or_is_refused(text: str) -> None:
    try:
        schema = Schema.parse(text)
    except SchemaError:
        return
    assert Schema.parse(schema.to_ddl()) == schema


def test_delta_accepts_the_json() -> None:
    deltalake = pytest.importorskip("deltalake")
    ddl = "n INT NOT NULL, tags ARRAY<STRING>, m MAP<STRING, DECIMAL(5,2)>, p STRUCT<lat: DOUBLE>"

    delta = deltalake.Schema.from_json(Schema.parse(ddl).to_json())

    assert [field.name for field in delta.fields] == ["n", "tags", "m", "p"]


def test_all_of_sparks_words_are_understood_in_any_case() -> None:
    text = (
        "a string, b Boolean, c TINYINT, d byte, e SMALLINT, f short, g int, h INTEGER, i BIGINT,"
        "j long, k float, l real, m double, n dec, o numeric(3), p decimal(5,2), q date,"
        "r timestamp, s timestamp_ltz, t TIMESTAMP_NTZ, u binary"
    )

    parsed = [field.type for field in Schema.parse(text).fields]

    assert parsed == [
        *(Atom.STRING, Atom.BOOLEAN, Atom.TINYINT, Atom.TINYINT, Atom.SMALLINT, Atom.SMALLINT),
        *(Atom.INT, Atom.INT, Atom.BIGINT, Atom.BIGINT, Atom.FLOAT, Atom.FLOAT, Atom.DOUBLE),
        *(Decimal(10, 0), Decimal(3, 0), Decimal(5, 2), Atom.DATE),
        *(Atom.TIMESTAMP, Atom.TIMESTAMP, Atom.TIMESTAMP_NTZ, Atom.BINARY),
    ]


def test_names_in_backquotes_not_null_and_comments_are_understood() -> None:
    text = "`a b``c` STRING COMMENT 'it\\'s', pos STRUCT<lat: DOUBLE NOT NULL, lon DOUBLE> NOT NULL"

    schema = Schema.parse(text)

    pos = Struct((Field("lat", Atom.DOUBLE, nullable=False), Field("lon", Atom.DOUBLE)))
    assert schema.fields == (Field("a b`c", Atom.STRING), Field("pos", pos, nullable=False))


def test_elements_that_may_not_be_null_survive_a_struct_type() -> None:
    schema = Schema((Field("a", Array(Atom.INT, contains_null=False)),))

    again = Schema.parse(StructType.fromJson(json.loads(schema.to_json())))

    assert again == schema


def test_an_unknown_type_is_reported_with_its_place_and_the_nearest_name() -> None:
    error = refusal("vehicle STRNG, at TIMESTAMP")

    assert str(error) == (
        "[SCHEMA] unknown type 'STRNG' "
        "(in the schema text, at character 9, near 'STRNG, at TIMESTAMP')\n"
        "  fix: did you mean 'STRING'? types are STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, "
        "FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY, DECIMAL(p,s), ARRAY, MAP, STRUCT"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "a schema without columns (in the schema text, at its end)"),
        ("a", "expected a type, got nothing (in the schema text, at its end)"),
        ("a INT,", "expected a column name, got nothing (in the schema text, at its end)"),
        ("a INT b INT", "expected ',' or the end, got 'b'"),
        ("a-b INT", "expected a type, got '-'"),
        ("a ARRAY<INT", "expected '>', got nothing"),
        ("a INT NOT", "expected 'NULL', got nothing"),
        ("a INT COMMENT x", "expected the comment in quotes, got 'x'"),
        ("a STRUCT<>", "a schema without columns"),
        ("a MAP<INT, INT>", "a MAP key that is not STRING"),
        ("a DECIMAL(40,2)", "DECIMAL(40,2) does not exist"),
        ("a DECIMAL(2,3)", "DECIMAL(2,3) does not exist"),
        ("a INT, A STRING", "columns 'a' and 'A' have the same name"),
        ("p STRUCT<x: INT, X: INT>", "columns 'x' and 'X' have the same name"),
        ("_batch INT", "column '_batch' starts with '_'"),
    ],
)
def test_what_is_not_a_schema_is_refused_by_name_and_place(text: str, what: str) -> None:
    assert refusal(text).what.startswith(what)


def test_a_struct_type_with_a_type_of_no_use_is_refused() -> None:
    class Odd:
        def jsonValue(self) -> dict[str, Any]:  # noqa: N802
            return {"fields": [{"name": "a", "type": "interval", "nullable": True}]}

    with pytest.raises(SchemaError, match="type 'interval' is not supported"):
        Schema.parse(Odd())
