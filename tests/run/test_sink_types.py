"""What records can be made of, held against an answer before anything runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)
from tests.faults import raises

import millstream as ms
from millstream.build.checks import sink_faults
from millstream.errors import Location, raise_faults
from millstream.model.dataset import Serve


def hold(sink: Any, **kinds: DataType) -> None:
    schema = StructType([StructField(name, kind) for name, kind in kinds.items()])
    frame: Any = SimpleNamespace(schema=schema, columns=schema.names)
    serve = Serve("items", ("raw",), lambda raw: raw, Location("app.py", 9), (sink,), "append")
    raise_faults(tuple(sink_faults(serve, frame)))


def headers(key: str = "key", value: DataType | None = None) -> ArrayType:
    fields = [StructField(key, StringType()), StructField("value", value or BinaryType())]
    return ArrayType(StructType(fields))


TEXT, RAW = ms.Kafka("t", format="text"), ms.Kafka("t", format="raw")
REFUSED: list[tuple[ms.Kafka, dict[str, DataType], str]] = [
    (TEXT, {"value": LongType()}, "'value', which is bigint"),
    (RAW, {"value": StringType(), "key": LongType()}, "'key', which is bigint"),
    (RAW, {"value": StringType(), "headers": headers("k")}, "'headers', which is array<struct<k:"),
    (RAW, {"value": StringType(), "headers": headers(value=LongType())}, "value:bigint>>"),
]


@pytest.mark.parametrize(("sink", "kinds", "why"), REFUSED)
def test_columns_that_no_record_can_be_made_of_are_refused(
    sink: ms.Kafka, kinds: dict[str, DataType], why: str
) -> None:
    for each in (sink, sink.in_batches()):
        with raises("STORE_MODE") as refused:
            hold(each, **kinds)

        assert why in refused.value.what
        assert refused.value.fix.startswith("cast it to ")
        assert refused.value.at == Location("app.py", 9)


def test_columns_that_records_can_be_made_of_are_taken() -> None:
    hold(TEXT, value=BinaryType(), n=LongType())
    hold(RAW, value=StringType(), key=BinaryType(), headers=headers())
    hold(RAW, value=StringType(), headers=headers(value=StringType()))
    hold(ms.Kafka("t"), value=LongType(), headers=LongType())
    hold(ms.Kafka("t", format="raw", key="key"), value=StringType(), key=LongType())
