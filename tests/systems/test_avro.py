from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.avro import array, long, record, written
from tests.graphs import graph, source

import millstream as ms
from millstream.bind import bind
from millstream.check import faults
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.loading import load
from millstream.model.codec import AvroOptions
from millstream.settings.profile import read_profile
from millstream.trial.batch import compare, run_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing.kafka import Broker, Topics

V1 = record(("id", "long"), ("at", long("timestamp-millis")), ("note", "string"), name="Order")
V2 = record(
    ("id", "long"), ("at", long("timestamp-millis")), ("price", ["null", "double"]), name="Order"
)
V2["fields"][2]["default"] = None
DECIMAL = {"type": "bytes", "logicalType": "decimal"}
COLUMNS = "id BIGINT, at TIMESTAMP, price DOUBLE"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, schema in (("v1", V1), ("v2", V2)):
        Path(f"{name}.avsc").write_text(json.dumps(schema))
    return tmp_path


def orders(columns: str = COLUMNS, **options: Any) -> ms.Kafka:
    return ms.Kafka("orders", format="avro", schema=columns, avro=AvroOptions(**options))


def reported(columns: str = COLUMNS, **options: Any) -> list[str]:
    found = faults(graph(source("orders", connector=orders(columns, **options))))
    return [str(fault) for fault in found]


def column_fault(columns: str, **options: Any) -> str:
    [found] = reported(columns, **options)
    first, _, fix = found.splitlines()
    return f"{first.partition(': ')[2]} | {fix.removeprefix('  fix: ')}"


def schema_fault(**options: Any) -> str:
    [found] = reported("id BIGINT", **options)
    return found.splitlines()[0].removeprefix("[AVRO_SCHEMA] source 'orders': ")


def test_schemas_are_given_as_files_or_as_text() -> None:
    assert reported(writer="v2.avsc") == []
    assert reported(writer=json.dumps(V2)) == []
    assert reported(writers={"7": "v1.avsc", "4294967295": "v2.avsc"}, reader="v2.avsc") == []


def test_a_file_is_read_once_when_the_source_is_declared() -> None:
    connector = orders(writer="v2.avsc")
    Path("v2.avsc").unlink()

    assert list(connector.faults("orders", source("orders").at)) == []
    assert connector.codec.avro is not None


DECLARE = "declare it as it is written, or leave it out"
LACKS = "leave it out, or give avro.reader: a schema with a default for it"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            "price DOUBLE",
            "column 'price' cannot be read from 'v1.avsc': "
            f"record Order has no such field | {LACKS}",
        ),
        (
            "id INT",
            "column 'id' cannot be read from 'v1.avsc': "
            f"it is long, which cannot be INT | {DECLARE}",
        ),
        (
            "at DATE",
            "column 'at' cannot be read from 'v1.avsc': it is long (timestamp-millis), "
            f"which cannot be DATE | {DECLARE}",
        ),
        (
            "note ARRAY<STRING>",
            "column 'note' cannot be read from 'v1.avsc': it is string, "
            f"which cannot be ARRAY | {DECLARE}",
        ),
    ],
)
def test_a_column_that_the_writer_cannot_give_is_named(columns: str, expected: str) -> None:
    assert column_fault(columns, writer="v1.avsc") == expected


@pytest.mark.parametrize(
    ("columns", "avro", "expected"),
    [
        ("x STRUCT<y: INT, z: INT>", record(("y", "int"), name="In"), "x.z"),
        ("x ARRAY<STRUCT<y: INT>>", array(record(("y", "long"), name="In")), "x[].y"),
        ("x MAP<STRING, INT>", {"type": "map", "values": "string"}, "x[]"),
        ("x INT", ["null", "string"], "x"),
        ("x INT", ["string", "bytes"], "x"),
        ("x INT NOT NULL", "null", "x"),
        ("x STRING", {"type": "fixed", "name": "F", "size": 2}, "x"),
        ("x DECIMAL(5,2)", {**DECIMAL, "precision": 6, "scale": 2}, "x"),
        ("x DECIMAL(9,1)", {**DECIMAL, "precision": 6, "scale": 2}, "x"),
    ],
)
def test_the_place_of_a_column_within_another_is_reported(
    columns: str, avro: Any, expected: str
) -> None:
    found = column_fault(columns, writer=json.dumps(record(("x", avro))))

    assert found.startswith(f"column {expected!r} cannot be read from 'avro.writer': ")


@pytest.mark.parametrize(
    ("columns", "reader", "why"),
    [
        ("id BIGINT", {}, "it is written as long, which cannot be read as string"),
        ("price DOUBLE", {}, "records written by v1.avsc lack it, and it has no default"),
        ("note STRING", {}, "the reader's record Order has no such field"),
        ("price DOUBLE", {"default": "x"}, 'its default "x" is not double'),
        (
            *("price DOUBLE NOT NULL", {"type": ["null", "double"], "default": None}),
            "its default is null, and the column is DOUBLE NOT NULL",
        ),
    ],
)
def test_a_reader_that_the_writer_does_not_suit_is_reported_by_column(
    columns: str, reader: dict[str, Any], why: str
) -> None:
    wanted = record(("id", "string"), ("price", "double"), name="Order")
    wanted["fields"][1] |= reader

    found = column_fault(columns, writer="v1.avsc", reader=json.dumps(wanted))

    assert f": {why} | " in found


def test_two_columns_are_not_read_from_one_field() -> None:
    wanted = record(("id", "long"), ("number", "long"), name="Order")
    wanted["fields"][1]["aliases"] = ["id"]

    found = column_fault("id BIGINT, number BIGINT", writer="v1.avsc", reader=json.dumps(wanted))

    assert ": it and 'id' are both written as 'id' | " in found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "avro has no schema"),
        ({"writer": "v1.avsc", "writers": {"1": "v1.avsc"}}, "avro has both a writer and writers"),
        (
            {"writer": "v3.avsc"},
            "avro.writer names 'v3.avsc', which cannot be read: No such file or directory",
        ),
        (
            {"writer": "{"},
            "avro.writer is no Avro schema of a record: not JSON: Expecting property name enclosed "
            "in double quotes: line 1 column 2 (char 1)",
        ),
        (
            {"writer": '"long"'},
            "avro.writer is no Avro schema of a record: the schema is long, not a record",
        ),
        (
            {"writers": {"x": "v1.avsc"}},
            "avro.writers.x has the id 'x', which is not a number of four bytes",
        ),
        ({"writers": {"1": 5}}, "avro.writers.1 is 5, not a text"),
        (
            {"writers": {"1": "v1.avsc"}, "reader": json.dumps(record(("id", "long")))},
            "avro.writers.1 is record Order, which is neither the reader's 'Row' nor an alias "
            "of it",
        ),
    ],
)
def test_schemas_that_are_missing_or_cannot_be_read_are_reported(
    options: dict[str, Any], expected: str
) -> None:
    assert schema_fault(**options) == expected


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (None, "field 'x' of 'R' has no type"),
        ("strng", "field 'x' of 'R' has the type 'strng', which does not exist"),
        ({"type": "array"}, "field 'x' of 'R' has no 'items'"),
        ({"type": "fixed", "name": "F", "size": "2"}, "field 'x' of 'R' has 'size': \"2\""),
        ({"type": "enum", "name": "{0}", "symbols": []}, "field 'x' of 'R' has the name '{0}'"),
        ({"type": "enum", "name": "R", "symbols": []}, "'R' is defined twice"),
        ([["null"]], "field 'x' of 'R' is a union without branches or of unions"),
    ],
)
def test_what_is_wrong_with_a_schema_is_reported_with_its_place(kind: Any, why: str) -> None:
    text = json.dumps(record(("x", kind), name="R"))

    assert schema_fault(writer=text) == f"avro.writer is no Avro schema of a record: {why}"


def test_a_profile_and_the_header_of_a_sql_file_say_the_same_as_python() -> None:
    expected = orders(writers={"7": "v1.avsc", "8": "v2.avsc"}, reader="v2.avsc")
    Path("shop").mkdir()
    Path("shop/orders.sql").write_text(
        "-- source: kafka\n-- topic: orders\n-- format: avro\n"
        f"-- schema: {COLUMNS}\n-- avro.writers.7: v1.avsc\n-- avro.writers.8: v2.avsc\n"
        "-- avro.reader: v2.avsc\n"
    )
    Path("millstream.toml").write_text(
        '[profile.default.sources.orders]\nkind = "kafka"\ntopic = "orders"\nformat = "avro"\n'
        'avro.writers = { 7 = "v1.avsc", 8 = "v2.avsc" }\navro.reader = "v2.avsc"\n'
    )
    declared = source("orders", connector=ms.Files("in", schema=COLUMNS))
    app = load("shop")

    [bound] = bind([declared], read_profile(Path.cwd())).declared

    assert app.faults == ()
    assert app.graph.sources[0].connector == expected
    assert getattr(bound, "connector", None) == expected


def test_a_fault_of_a_header_is_reported_at_its_line() -> None:
    Path("shop").mkdir()
    Path("shop/orders.sql").write_text(
        "-- source: kafka\n-- topic: orders\n-- format: avro\n"
        "-- schema: id BIGINT\n-- avro.writers.7: v3.avsc\n-- avro.writrs: x\n"
    )

    unread, unknown = load("shop").faults

    assert (unknown.code, str(unknown.at)) == ("UNKNOWN_OPTION", "shop/orders.sql:6")
    assert "did you mean 'avro.writer'" in unknown.fix
    assert (unread.code, str(unread.at)) == ("AVRO_SCHEMA", "shop/orders.sql:5")


@pytest.mark.spark
@pytest.mark.kafka
def test_values_of_two_schemas_land_by_their_ids_and_the_stream_gives_the_batch_answer(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    at = 1_794_744_000_000
    old = written(V1, *({"id": n, "at": at + n, "note": "x" * n} for n in range(20)))
    new = written(V2, *({"id": n, "at": at + n, "price": n / 2} for n in range(20, 40)))
    topics.create("avro", partitions=2)
    topics.send("avro", *(b"\0\0\0\0\7" + raw for raw in old))
    topics.send("avro", *(b"\0\0\0\0\x08" + raw for raw in new), partition=1)
    wrong = [b"\0\0\0\0\x09\2", b"\0\0\0\0\x08" + new[0] + b"\0", b"\0\0\0\0\7" + old[5][:-1], None]
    topics.send("avro", *wrong)
    avro = AvroOptions(writers={"7": "v1.avsc", "8": "v2.avsc"}, reader="v2.avsc")
    limit = {"maxOffsetsPerTrigger": 15}
    app = ms.App("shop", home=tmp_path / "home")

    @app.source(event_time="at", watermark="1 minute")
    def orders() -> ms.Kafka:
        return ms.Kafka("avro", broker.servers, "avro", COLUMNS, options=limit, avro=avro)

    @app.table(mode="complete")
    def priced(orders: DataFrame) -> DataFrame:
        return orders.groupBy("price").count()

    app.run(once=True, fail_fast=True)
    landed = app.read("orders").orderBy("_position", "_origin").collect()
    fresh = Home.at(tmp_path / "batch")
    run_batch(app.graph, spark, app.home(), fresh)

    right = sorted((r.id, r.price) for r in landed if r._verdict == "ok")
    assert right == [(n, None if n < 20 else n / 2) for n in range(40)]
    assert [(r._reason, r._raw and bytes(r._raw)) for r in landed if r._verdict != "ok"] == [
        ("no schema is given for id 9, only for 7, 8", wrong[0]),
        ("1 byte left over after the record", wrong[1]),
        ("the record ends too early, at $.note", wrong[2]),
        ("null record", None),
    ]
    assert read_ledger(app.home()).sources[0].is_balanced
    assert all(c.is_equal for c in compare(app.graph, spark, app.home(), fresh))
