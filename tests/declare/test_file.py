from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import millstream as ms
from millstream.errors import Location
from millstream.loading import load
from millstream.model.dataset import Alert, Expectations, Source

ORDERS = """\
-- source: files
-- path: data
-- schema: id BIGINT, item STRING, at TIMESTAMP, price DOUBLE
-- event_time: at
-- watermark: 10 minutes
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("shop", "data"):
        (tmp_path / name).mkdir()
    write("orders", ORDERS)
    return tmp_path


def write(name: str, text: str) -> None:
    Path(f"shop/{name}.sql").write_text(text)


def source(header: str) -> Source:
    write("orders", header)
    app = load("shop")
    assert app.faults == ()
    return app.graph.sources[0]


def fault(name: str, text: str) -> str:
    write(name, text)
    [found] = load("shop").faults
    return str(found)


def places() -> list[tuple[str, str]]:
    return [(f.code, str(f.at).removeprefix("shop/")) for f in load("shop").faults]


def test_a_file_is_a_dataset_named_after_it() -> None:
    write("cheap", "SELECT * FROM orders WHERE price < 3\n")
    write("items", "-- table: update\n-- key: item\nSELECT item, count(*) FROM cheap GROUP BY item")

    app = load("shop")

    assert (app.name, app.faults) == ("shop", ())
    assert [d.name for d in app.graph.ordered] == ["orders", "cheap", "items"]
    [orders], [cheap], [items] = app.graph.sources, app.graph.views, app.graph.tables
    assert orders.connector == ms.Files(
        "data", schema="id BIGINT, item STRING, at TIMESTAMP, price DOUBLE"
    )
    assert (orders.event_time, orders.watermark) == ("at", "10 minutes")
    assert cheap.reads == ("orders",)
    assert (items.mode, items.key, items.reads) == ("update", ("item",), ("cheap",))


def test_a_table_says_all_that_a_table_in_python_says() -> None:
    write(
        "items",
        '-- table: update\n-- name: per_item\n-- key: item, "day"\n-- partition_by: day\n'
        '-- expect "price: is positive": price > 0\n'
        "-- expect \"item is known\": item IN ('a',\n--   'b')\n"
        "-- on_violation: drop\n-- evolve: true\n-- trigger: 5 seconds\n"
        "SELECT * FROM orders",
    )

    [table] = load("shop").graph.tables

    assert table.name == "per_item"
    assert table.partition_by == ("day",)
    assert table.expect == Expectations(
        {"price: is positive": "price > 0", "item is known": "item IN ('a', 'b')"}, "drop"
    )
    assert (table.evolve, table.options.trigger) == (True, "5 seconds")


def test_a_table_without_a_mode_appends() -> None:
    write("items", "-- table:\nSELECT * FROM orders")

    assert load("shop").graph.tables[0].mode == "append"


def test_parts_of_an_option_have_a_dot() -> None:
    made = source(
        "-- source: Files\n-- path: data\n-- format: csv\n-- schema: a INT\n"
        '-- csv.sep: "\\t"\n-- csv.header: true\n'
        "-- csv.multiline: true\n-- options.maxFilesPerTrigger: 1\n"
    )

    assert made.connector == ms.Files(
        "data",
        "csv",
        "a INT",
        ms.CsvOptions(sep="\t", header=True, multiline=True),
        {"maxFilesPerTrigger": "1"},
    )


def test_a_connector_s_option_goes_by_its_full_name_where_the_source_has_one_too() -> None:
    made = source(
        "-- source: generator\n-- schema: id BIGINT, at TIMESTAMP\n-- rate: 5\n"
        "-- event_time: at\n-- watermark: 1 minute\n-- late: fail\n"
        "-- generator.event_time: at\n-- generator.late: 0.5\n-- late_by: 2 hours\n"
    )

    assert (made.late, made.event_time) == ("fail", "at")
    assert made.connector == ms.Generator(
        "id BIGINT, at TIMESTAMP", 5, event_time="at", late=0.5, late_by=timedelta(hours=2)
    )


def test_comments_around_the_header_are_not_read() -> None:
    write(
        "cheap",
        "\n/* Orders\n-- source: none */\n\n-- name: low\n\n-- key: none\n"
        "SELECT 1 -- x: y\nFROM orders",
    )

    [view] = load("shop").graph.views

    assert (view.name, view.at) == ("low", Location("shop/cheap.sql", 8))


def test_hidden_and_other_files_are_not_read() -> None:
    for name in ("shop/.#orders.sql", "shop/notes.md"):
        Path(name).write_text("?")

    assert load("shop").faults == ()


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    assert fault("items", "-- table: append\n-- evolv: true\nSELECT id FROM orders") == (
        "[UNKNOWN_OPTION] 'items' has the option 'evolv', which does not exist\n"
        "  at:  shop/items.sql:2\n"
        "  fix: did you mean 'evolve'? options are "
        "batch, behind, evolve, expect, failed_rows, freshness, keep_quarantined, "
        "keep_versions, key, name, on_violation, partition_by, trigger"
    )


@pytest.mark.parametrize(
    ("line", "nearest"),
    [("csv.spe: x", "csv.sep"), ("options: x", "options.…"), ("csv: x", "csv.sep")],
)
def test_an_option_with_parts_is_said_by_its_parts(line: str, nearest: str) -> None:
    reported = fault("orders", f"{ORDERS}-- {line}\n").splitlines()

    assert reported[0].startswith("[UNKNOWN_OPTION] ")
    assert reported[2].startswith(f"  fix: did you mean {nearest!r}?")


def test_a_connector_that_does_not_exist_is_refused_and_its_readers_are_not() -> None:
    write("cheap", "SELECT * FROM orders")

    assert fault("orders", "-- source: fils\n-- path: data\n") == (
        "[OPTION_REFUSED] 'orders' has source='fils'\n"
        "  at:  shop/orders.sql:1\n"
        "  fix: did you mean 'files'? source is one of delta, files, generator, http, kafka, "
        "rate, socket, table"
    )


def test_an_option_that_the_connector_needs_is_asked_for() -> None:
    assert fault("orders", "-- source: kafka\n-- schema: id INT\n") == (
        "[OPTION_MISSING] 'orders' has source: kafka and no topic\n"
        "  at:  shop/orders.sql:1\n"
        "  fix: add a line to the header: -- topic: …"
    )


def test_an_option_without_a_default_is_read_by_its_type() -> None:
    assert source("-- source: http\n-- port: 7401\n").connector == ms.Http(7401)
    assert fault("orders", "-- source: socket\n-- host: mill\n-- port: http\n") == (
        "[OPTION_VALUE] 'orders' has the option 'port' with 'http'\n"
        "  at:  shop/orders.sql:3\n"
        "  fix: write a whole number"
    )


def test_an_option_said_twice_is_refused() -> None:
    assert fault("orders", ORDERS + "-- path: data\n") == (
        "[OPTION_TWICE] 'orders' has the option 'path' twice, first at shop/orders.sql:2\n"
        "  at:  shop/orders.sql:6\n"
        "  fix: keep one of the two"
    )


def test_a_mode_beside_that_of_the_table_is_one_too_many() -> None:
    assert fault("items", "-- table: append\n-- mode: append\nSELECT * FROM orders") == (
        "[OPTION_TWICE] 'items' has the option 'mode' twice, first at shop/items.sql:1\n"
        "  at:  shop/items.sql:2\n"
        "  fix: keep one of the two"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("live: perhaps", "write true or false"),
        ("rate: many", "write a whole number"),
        ("malformed: some", "write a number"),
        ("late_by: soon", "write a length of time, such as 10 minutes"),
        ("trigger:", "write a value"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(line: str, expected: str) -> None:
    reported = fault("orders", f"-- source: generator\n-- schema: id INT\n-- {line}\n").splitlines()

    option, _, value = line.partition(":")
    assert reported == [
        f"[OPTION_VALUE] 'orders' has the option {option!r} with {value.strip()!r}",
        "  at:  shop/orders.sql:3",
        f"  fix: {expected}",
    ]


@pytest.mark.parametrize("line", ["-- Orders of today", "-- expect: id > 3", '-- late "x": fail'])
def test_a_line_of_the_header_that_is_no_option_is_refused(line: str) -> None:
    assert fault("orders", ORDERS + line + "\n") == (
        f"[HEADER_LINE] the header of 'orders' has the line {line!r}, which is no option\n"
        "  at:  shop/orders.sql:6\n"
        '  fix: write -- option: value, or -- expect "rule": condition; '
        "other comments come after an empty line, or in /* … */"
    )


def test_a_view_with_an_option_of_tables_is_reported_with_how_to_be_one() -> None:
    assert fault("items", "-- key: id\nSELECT id FROM orders") == (
        "[NOT_A_TABLE] view 'items' has the option 'key', which only tables have\n"
        "  at:  shop/items.sql:1\n"
        "  fix: add -- table: append, update or complete to keep its answer as a table, "
        "or leave the option out"
    )


def test_a_source_with_a_query_is_refused() -> None:
    assert fault("orders", ORDERS + "\nSELECT 1") == (
        "[SOURCE_QUERY] source 'orders' has a query below its header\n"
        "  at:  shop/orders.sql:7\n"
        "  fix: a source reads no dataset: move the query to a file of its own, FROM orders"
    )


@pytest.mark.parametrize(
    ("query", "why", "line"),
    [
        ("SELECT id\nFROM orders\nWHERE (id = 3\n", "Expecting ), near '3'", 5),
        ("SELECT id\nFROM orders WHERE id = '3\n\n", "Missing '", 4),
        ("SELECT id FROM orders;\n\nSELECT id FROM orders", "got 2 statements", 5),
        ("\nDROP TABLE orders", "got DROP", 4),
        ("", "got 0 statements", 1),
    ],
)
def test_sql_that_cannot_be_read_is_reported_at_its_line(query: str, why: str, line: int) -> None:
    reported = fault("items", f"-- table:\n\n{query}").splitlines()

    assert reported[0].startswith(f"[SQL_REFUSED] the SQL of 'items' is not one query: {why}")
    assert reported[1] == f"  at:  shop/items.sql:{line}"


def test_a_file_that_is_not_text_is_reported() -> None:
    Path("shop/items.sql").write_bytes(b"\xff\xfe")

    [found] = load("shop").faults

    assert found.what.startswith("the SQL of 'items' is not one query: 'utf-8' codec can't")


def test_every_fault_is_reported_at_its_own_line_and_all_at_once() -> None:
    write(
        "orders",
        "-- source: files\n-- path: nowhere\n-- format: jsn\n-- event_time: when\n"
        "-- watermark: soon\n-- late: never\n-- name: Orders\n",
    )
    write("a", "-- table: append\n-- key: id\n\nSELECT id\nFROM\n  Orders")
    write("b", "-- table: updat\n-- on_violation: panic\n\nSELECT id\nFROM a\nJOIN ordrs")
    write("c", "-- table: update\nSELECT * FROM d")
    write("d", "\nSELECT *\nFROM e")
    write("e", "\nSELECT *\n\nFROM d")

    assert places() == [
        ("KEY_UNUSED", "a.sql:2"),
        ("OPTION_REFUSED", "b.sql:1"),
        ("OPTION_REFUSED", "b.sql:2"),
        ("UNKNOWN_INPUT", "b.sql:6"),
        ("KEY_MISSING", "c.sql:1"),
        ("CYCLE", "d.sql:3"),
        ("PATH_MISSING", "orders.sql:2"),
        ("FORMAT_REFUSED", "orders.sql:3"),
        ("EVENT_TIME_COLUMN", "orders.sql:4"),
        ("DURATION_REFUSED", "orders.sql:5"),
        ("OPTION_REFUSED", "orders.sql:6"),
        ("NAME_REFUSED", "orders.sql:7"),
    ]


def test_a_schema_that_cannot_be_read_is_reported_at_its_line() -> None:
    write("orders", "-- source: files\n-- path: data\n-- schema: id BIGNT\n")

    assert places() == [("SCHEMA", "orders.sql:3")]


def test_an_event_time_and_a_watermark_without_the_other_are_reported_at_their_lines() -> None:
    write("orders", "-- source: files\n-- path: data\n-- schema: at TIMESTAMP\n-- event_time: at\n")
    write(
        "visits", "-- source: files\n-- path: data\n-- schema: at TIMESTAMP\n-- watermark: 1 day\n"
    )

    assert places() == [
        ("WATERMARK_MISSING", "orders.sql:4"),
        ("WATERMARK_MISSING", "visits.sql:4"),
    ]


PYTHON = """\
import millstream as ms
app = ms.App("shop")
@app.source()
def clicks(): return ms.Memory("id BIGINT")
app.sql_files("sql")
"""


def test_python_and_sql_read_each_other_s_datasets(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("shop/sql").mkdir()
    Path("shop/app.py").write_text(PYTHON + "@app.table()\ndef twice(both): return both\n")
    Path("shop/sql/both.sql").write_text("SELECT * FROM clicks JOIN more USING (id)")
    Path("shop/sql/more.sql").write_text(ORDERS)

    app = load("shop")

    assert app.faults == ()
    assert [d.name for d in app.graph.declared] == ["clicks", "both", "more", "twice"]


def test_a_name_that_python_and_sql_both_declare_is_refused_with_both_places() -> None:
    Path("shop/sql").mkdir()
    Path("shop/app.py").write_text(PYTHON)
    Path("shop/sql/other.sql").write_text(ORDERS + "-- name: clicks\n")

    [found] = load("shop").faults

    assert str(found) == (
        "[DUPLICATE_NAME] dataset 'clicks' is declared twice, first at shop/app.py:3\n"
        "  at:  shop/sql/other.sql:6\n"
        "  fix: rename one of the two"
    )


def test_a_folder_without_sql_files_is_refused_at_the_line_that_names_it() -> None:
    Path("shop/app.py").write_text(PYTHON)

    [found] = load("shop").faults

    assert str(found) == (
        "[NO_SQL_FILES] folder 'shop/sql' holds no .sql files\n"
        "  at:  shop/app.py:5\n"
        "  fix: name the folder they are in; it is looked for beside the file that names it"
    )


def test_a_location_without_lines_is_its_own_for_every_part() -> None:
    at = Location("app.py", 3)

    assert at.of("key") is at
    assert replace(at, lines={("key",): 5}).of("key") == Location("app.py", 5)


@pytest.mark.parametrize(
    ("header", "column", "expression"),
    [
        ("event_time: timestamp_millis(id)", "event_time", "timestamp_millis(id)"),
        ("event_time.seen: timestamp_millis(id)", "seen", "timestamp_millis(id)"),
        ("event_time.at: at", "at", None),
        ("event_time: `at`", "at", None),
    ],
)
def test_an_event_time_may_be_an_expression_with_a_name_or_without(
    header: str, column: str, expression: str | None
) -> None:
    orders = source(ORDERS.replace("event_time: at", header))

    assert (orders.event_time, orders.event_time_from) == (column, expression)


def test_a_source_has_one_event_time() -> None:
    found = fault("orders", ORDERS + "-- event_time.other: timestamp_millis(id)\n")

    assert found.startswith("[EVENT_TIME_EXPRESSION] source 'orders' has event_time=")
    assert "which has 2 names" in found


def test_an_answer_is_served_and_an_alert_is_sent_as_in_python() -> None:
    write(
        "sold",
        "-- serve: sqlite\n-- path: shop.db\n-- key: item\n-- mode: update\n-- trigger: 5 seconds\n"
        "SELECT item, count(*) AS n FROM orders GROUP BY item",
    )
    write(
        "dear",
        "-- alert: email\n-- to: ann@shop.example, bob@shop.example\n-- sender: mill@shop.example\n"
        "-- key: id\n-- cooldown: 10 minutes\nSELECT id, at, price FROM orders WHERE price > 100",
    )
    write(
        "events",
        "-- alert: kafka\n-- topic: dear\n-- key: id\n-- kafka.key: id\nSELECT id, at FROM orders",
    )

    app = load("shop")

    assert app.faults == ()
    [sold] = app.graph.serves
    dear, events = (app.graph.datasets[name] for name in ("dear", "events"))
    assert isinstance(dear, Alert)
    assert isinstance(events, Alert)
    assert (sold.name, sold.reads, sold.mode, sold.options.trigger) == (
        "sold",
        ("orders",),
        "update",
        "5 seconds",
    )
    assert sold.to == (ms.SQLite("shop.db", key=["item"]),)
    assert dear.to == (
        ms.Email(["ann@shop.example", "bob@shop.example"], sender="mill@shop.example"),
    )
    assert (dear.key, dear.cooldown) == (("id",), "10 minutes")
    assert (events.key, events.to) == (("id",), (ms.Kafka("dear", key=["id"]),))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "-- serve: sqlit\n-- path: x\nSELECT id FROM orders",
            [("OPTION_REFUSED", "wrong.sql:1")],
        ),
        ("-- serve: sqlite\nSELECT id FROM orders", [("OPTION_MISSING", "wrong.sql:1")]),
        ("-- alert: email\nSELECT id FROM orders", [("OPTION_MISSING", "wrong.sql:1")] * 2),
        (
            "-- serve: sqlite\n-- path: x\n-- cooldown: 1 minute\nSELECT id FROM orders",
            [("UNKNOWN_OPTION", "wrong.sql:3")],
        ),
        (
            "-- alert: log\n-- mode: update\nSELECT id FROM orders",
            [("UNKNOWN_OPTION", "wrong.sql:2")],
        ),
        (
            "-- alert: log\n-- cooldown: soon\nSELECT id, at FROM orders",
            [("DURATION_REFUSED", "wrong.sql:2")],
        ),
        ("-- serve: sqlite\n-- path: x\n", [("SQL_REFUSED", "wrong.sql:1")]),
    ],
)
def test_a_wrong_header_of_a_serve_or_an_alert_is_refused_at_its_line(
    text: str, found: list[tuple[str, str]]
) -> None:
    write("wrong", text)

    assert places() == found


def test_formats_are_one_text_or_an_array_of_texts() -> None:
    orders = source(ORDERS + '-- formats.at: ["[yyyy-]MM-dd", "epoch_ms"]\n')
    assert orders.connector.codec.record.formats_of("at") == ("[yyyy-]MM-dd", "epoch_ms")

    orders = source(ORDERS + "-- formats.at: [yyyy-]MM-dd\n")
    assert orders.connector.codec.record.formats_of("at") == ("[yyyy-]MM-dd",)


def test_a_header_says_how_fields_become_columns() -> None:
    header = """\
-- source: files
-- path: data
-- format: csv
-- schema: id BIGINT, at TIMESTAMP, agent STRING, ip STRING, q STRING, `a,b` INT, more STRING
-- rename.@timestamp: at
-- rename."user agent": agent
-- rename.client.ip: ip
-- rename."a:\\"b\\"": q
-- rest: more
-- lenient: id, ip
-- csv.header: true
-- csv.null_value: ["NA", "-"]
-- csv.decimal: ","
-- csv.thousands: .
"""

    read = source(header).connector

    options = ms.CsvOptions(header=True, null_value=("NA", "-"), decimal=",", thousands=".")
    names = {"@timestamp": "at", "user agent": "agent", "client.ip": "ip", 'a:"b"': "q"}
    schema = "id BIGINT, at TIMESTAMP, agent STRING, ip STRING, q STRING, `a,b` INT, more STRING"
    assert read == ms.Files(
        "data", "csv", schema, options, rename=names, rest="more", lenient=("id", "ip")
    )


@pytest.mark.parametrize(
    ("written", "lenient"),
    [("true", True), ("FALSE", False), ("id", ("id",)), ('["a,b", "id"]', ("a,b", "id"))],
)
def test_lenient_is_all_columns_or_some(written: str, lenient: object) -> None:
    header = ORDERS.replace("item STRING", "`a,b` STRING")

    assert source(f"{header}-- lenient: {written}\n").connector.codec.record.lenient == lenient


def test_a_computed_event_time_may_have_any_name() -> None:
    read = source(ORDERS.replace("event_time: at", 'event_time."t: s": at + INTERVAL 1 HOUR'))

    assert (read.event_time, read.event_time_from) == ("t: s", "at + INTERVAL 1 HOUR")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("rest: more", "[RECORD_OPTION] source 'orders' has rest='more', but 'more' is no column"),
        ("rest: item", None),
        ("lenient: ids", "[RECORD_OPTION] source 'orders' has lenient='ids', but 'ids' is no"),
        ("rename.a.b: id", None),
        ("rename.a.b: c", "[RENAME] source 'orders' renames field 'a.b' to 'c', but 'c' is no"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(line: str, found: str | None) -> None:
    write("orders", f"{ORDERS}-- {line}\n")

    faults = [str(fault) for fault in load("shop").faults]

    assert [fault.startswith(found or "") for fault in faults] == ([] if found is None else [True])
