from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.graphs import source, table

from millstream.bind import bind
from millstream.errors import Location
from millstream.model.codec import CsvOptions
from millstream.model.dataset import Serve, Source
from millstream.settings.profile import read_profile
from millstream.systems.delta.source import Delta
from millstream.systems.files.source import Files
from millstream.systems.generator.source import Generator
from millstream.systems.http.source import Http, HttpLimits
from millstream.systems.kafka.settings import Kafka
from millstream.systems.memory.source import Memory
from millstream.systems.postgres.settings import Postgres
from millstream.systems.socket.source import Socket
from millstream.systems.sqlite.settings import SQLite

if TYPE_CHECKING:
    from millstream.bind import BoundApp

SCHEMA = "id BIGINT, at TIMESTAMP"
IN_CODE = Files("in", format="csv", schema=SCHEMA, csv=CsvOptions(sep=";"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MILLSTREAM_PROFILE", raising=False)
    return tmp_path


def bound(text: str, orders: Source | None = None) -> BoundApp:
    """Apply a default profile to an app with a source `orders` and a table that reads it."""
    Path("millstream.toml").write_text(text)
    orders = orders or source("orders", connector=IN_CODE, event_time="at", watermark="1 hour")
    return bind([orders, table("paid", "orders")], read_profile(Path.cwd()))


def orders_of(text: str, orders: Source | None = None) -> Source:
    result = bound(text, orders)
    assert result.faults == ()
    [found] = [dataset for dataset in result.declared if isinstance(dataset, Source)]
    return found


def faults_of(keys: str) -> list[str]:
    result = bound(f"[profile.default.sources.orders]\n{keys}\n")
    assert bound("").declared[0] == result.declared[0]
    return [str(fault) for fault in result.faults]


def test_a_source_comes_from_elsewhere_and_keeps_its_schema_and_its_times() -> None:
    orders = orders_of(
        "[profile.default.sources.orders]\n"
        'kind = "kafka"\n'
        'topic = "orders"\n'
        'bootstrap_servers = "host:9092"\n'
        'starting_offsets = "latest"\n'
        "[profile.default.sources.orders.options]\n"
        "maxOffsetsPerTrigger = 10\n"
        '"kafka.security.protocol" = "SSL"\n'
        'kafka.ssl.truststore.type = "PEM"\n'
    )

    assert orders.connector == Kafka(
        "orders",
        "host:9092",
        schema=SCHEMA,
        starting_offsets="latest",
        options={
            "maxOffsetsPerTrigger": 10,
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
        },
    )
    assert (orders.event_time, orders.watermark) == ("at", "1 hour")
    assert (str(orders.connector_at), str(orders.at)) == ("millstream.toml:2", "app.py:7")


def test_without_a_kind_the_connector_of_the_code_is_changed() -> None:
    orders = orders_of('[profile.default.sources.orders]\npath = "/data/in"\n')

    assert orders.connector == replace(IN_CODE, path="/data/in")


def test_tables_in_a_connector_are_read() -> None:
    orders = orders_of(
        "[profile.default.sources.orders]\n"
        'kind = "files"\npath = "in"\nformat = "csv"\ncsv = { sep = "|", multiline = true }\n'
    )

    assert orders.connector == Files(
        "in", format="csv", schema=SCHEMA, csv=CsvOptions(sep="|", multiline=True)
    )


def test_a_source_of_the_code_is_served_over_http_or_read_from_a_socket() -> None:
    said = 'kind = "http"\nport = 8080\nlimits.connections = 9\nlimits.body_timeout = "3 s"\n'
    http = orders_of(f"[profile.default.sources.orders]\n{said}")
    said = 'kind = "socket"\nhost = "mill"\nport = 9999\nformat = "json"\n'
    socket = orders_of(f"[profile.default.sources.orders]\n{said}")

    limits = HttpLimits(connections=9, body_timeout=timedelta(seconds=3))
    assert http.connector == Http(8080, schema=SCHEMA, limits=limits)
    assert socket.connector == Socket("mill", 9999, format="json", schema=SCHEMA)


def test_a_delta_table_must_have_the_columns_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    said = '[profile.default.sources.orders]\nkind = "delta"\npath = "${PLACE}"\n'
    monkeypatch.setenv("PLACE", "table-4711")
    at = pa.array([], pa.timestamp("us", "UTC"))

    write_deltalake("table-4711", pa.table({"id": pa.array([], pa.int64()), "at": at}))
    assert orders_of(said).connector == Delta("table-4711")

    write_deltalake(
        "table-4711", pa.table({"n": pa.array([1])}), mode="overwrite", schema_mode="overwrite"
    )
    [fault] = bound(said).faults
    assert fault.what == (
        "source 'orders' has kind 'delta', which gives 'n BIGINT' and not the columns of the code"
    )


def test_a_delta_table_that_is_missing_is_reported_as_such() -> None:
    orders = orders_of('[profile.default.sources.orders]\nkind = "delta"\npath = "nowhere"\n')

    assert [fault.code for fault in orders.connector.faults("orders", orders.at)] == [
        "DELTA_MISSING"
    ]


def test_made_up_records_have_the_event_time_of_the_source() -> None:
    orders = orders_of(
        "[profile.default.sources.orders]\n"
        'kind = "generator"\nrate = 5\nlate = 1\nlate_by = "2 hours"\n'
    )

    assert orders.connector == Generator(
        SCHEMA, rate=5, event_time="at", late=1.0, late_by=timedelta(hours=2)
    )


def test_what_is_not_bound_is_left_alone() -> None:
    memory = source("orders", connector=Memory(SCHEMA))

    assert orders_of("", memory) is memory


def test_every_fault_of_a_source_is_reported() -> None:
    keys = (
        'kind = "kafka"\ntopc = "orders"\nformat = 3\n'
        'starting_offsets = "newest"\noptions = [1]\nschema = "id INT"'
    )

    assert faults_of(keys) == [
        "[UNKNOWN_KEY] 'topc' is no key of 'sources.orders'\n"
        "  at:  millstream.toml:3\n"
        "  fix: did you mean 'topic'? keys are avro, batch, behind, bootstrap_servers, csv, "
        "delete_when, envelope, event_time, failed_rows, format, formats, freshness, keep, "
        "keep_versions, key, kind, lenient, live, options, parse, pattern, rename, rest, "
        "starting_offsets, topic, trigger, watermark",
        "[VALUE_REFUSED] 'sources.orders.format' is 3 (an integer)\n"
        "  at:  millstream.toml:4\n"
        "  fix: write a text",
        "[VALUE_REFUSED] 'sources.orders.starting_offsets' is 'newest' (a text)\n"
        "  at:  millstream.toml:5\n"
        '  fix: write "earliest" or "latest"',
        "[VALUE_REFUSED] 'sources.orders.options' is an array\n"
        "  at:  millstream.toml:6\n"
        "  fix: write a table",
        "[UNKNOWN_KEY] 'schema' is no key of 'sources.orders'\n"
        "  at:  millstream.toml:7\n"
        "  fix: keys are avro, batch, behind, bootstrap_servers, csv, delete_when, envelope, "
        "event_time, failed_rows, format, formats, freshness, keep, keep_versions, key, kind, "
        "lenient, live, options, parse, pattern, rename, rest, starting_offsets, topic, trigger, "
        "watermark",
        "[KEY_REQUIRED] source 'orders' has kind 'kafka' and no 'topic'\n"
        "  at:  millstream.toml:2\n"
        "  fix: add it: topic = …",
    ]


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        (
            'kind = "kafak"',
            "fix: did you mean 'kafka'? "
            "kinds are delta, files, generator, http, kafka, rate, socket, table",
        ),
        ('kind = "receiver"', "[UNKNOWN_KIND] source 'orders' has kind 'receiver'"),
        ('kind = "http"\nport = "80"', "'sources.orders.port' is '80' (a text)"),
        ("kind = 3", "'sources.orders.kind' is 3 (an integer)"),
        ('kind = "generator"\nrate = true', "'sources.orders.rate' is True (a boolean)"),
        ('kind = "generator"\nrate = 1.5', "'sources.orders.rate' is 1.5 (a number)"),
        ('kind = "generator"\nlate_by = "soon"', "'sources.orders.late_by' is 'soon' (a text)"),
        ('kind = "files"\npath = { a = 1 }', "'sources.orders.path' is a table"),
        ('kind = "files"\npath = "in"\ncsv = 3', "'sources.orders.csv' is 3 (an integer)"),
        ('kind = "files"\npath = "in"\ncsv.sp = "x"', "did you mean 'sep'?"),
        ('kind = "files"\npath = "in"\noptions.a = [1]', "'sources.orders.options.a' is an array"),
        ('kind = "rate"', "which gives 'timestamp TIMESTAMP, value BIGINT'"),
    ],
)
def test_a_wrong_value_is_refused(keys: str, fault: str) -> None:
    [reported] = faults_of(keys)

    assert fault in reported


def test_a_source_that_the_app_does_not_declare_is_refused() -> None:
    [fault] = bound("[profile.default.sources.ordrs]\n").faults

    assert str(fault) == (
        "[UNKNOWN_SOURCE] source 'ordrs' is bound, but the app does not declare it\n"
        "  at:  millstream.toml:1\n"
        "  fix: did you mean 'orders'? sources are orders"
    )


def test_the_connector_of_the_code_must_be_one_that_can_be_written_down() -> None:
    memory = source("orders", connector=Memory(SCHEMA))

    [fault] = bound('[profile.default.sources.orders]\npath = "x"\n', memory).faults

    assert str(fault).splitlines()[0] == "[UNKNOWN_KIND] source 'orders' has kind 'memory'"


def test_spark_settings_are_texts_as_spark_writes_them() -> None:
    result = bound(
        "[profile.default.spark]\n"
        '"spark.executor.memory" = "4g"\nspark.executor.cores = 2\nspark.ui.enabled = true\n'
    )

    assert result.spark == {
        "spark.executor.memory": "4g",
        "spark.executor.cores": "2",
        "spark.ui.enabled": "true",
    }


def test_spark_settings_that_break_exactly_once_are_refused_by_name() -> None:
    result = bound(
        "[profile.default.spark]\n"
        'spark.master = "local"\n"spark.sql.files.ignoreMissingFiles" = true\n'
    )

    assert result.spark == {}
    assert [str(fault) for fault in result.faults] == [
        "[SPARK_SETTING_REFUSED] 'spark.master' cannot be set: it has a key of its own, master\n"
        "  at:  millstream.toml:2\n"
        "  fix: leave it out",
        "[SPARK_SETTING_REFUSED] 'spark.sql.files.ignoreMissingFiles' cannot be set: "
        "rows would be lost without an error\n"
        "  at:  millstream.toml:3\n"
        "  fix: leave it out",
    ]


def test_a_secret_cannot_be_where_the_command_line_would_show_it() -> None:
    [fault] = bound('[profile.default.spark]\n"spark.driver.memory" = "${MEMORY:-4g}"\n').faults

    assert str(fault) == (
        "[VALUE_REFUSED] 'spark.driver.memory' is '${MEMORY:-4g}' (a text)\n"
        "  at:  millstream.toml:2\n"
        "  fix: write it plainly: it is on the JVM's command line, which anyone can read"
    )


def serving(tmp_path: Path, toml: str) -> BoundApp:
    (tmp_path / "millstream.toml").write_text(toml)
    sink = SQLite("visits.db", table="counted", key="page", delete_when="n = 0")
    serve = Serve("by_page", ("views",), lambda views: views, Location("app.py", 9), (sink,))
    return bind([serve], read_profile(tmp_path, "prod"))


def test_a_served_answer_goes_to_the_store_of_the_profile_with_the_key_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_DB", "postgresql://me:hunter22@db/site")
    bound = serving(
        tmp_path, '[profile.prod.serve.by_page]\nkind = "postgres"\ndsn = "${SITE_DB}"\n'
    )

    assert bound.faults == ()
    [serve] = bound.declared
    assert isinstance(serve, Serve)
    assert serve.to == (
        Postgres("postgresql://me:hunter22@db/site", key="page", delete_when="n = 0"),
    )
    assert "hunter22" not in repr(serve.to)
    assert "${SITE_DB}" in repr(serve.to)


def test_a_store_that_stays_the_same_keeps_what_the_profile_does_not_say(tmp_path: Path) -> None:
    [serve] = serving(tmp_path, '[profile.prod.serve.by_page]\npath = "other.db"\n').declared

    assert isinstance(serve, Serve)
    expected = SQLite("other.db", table="counted", key="page", delete_when="n = 0")
    assert serve.to == (expected,)


@pytest.mark.parametrize(
    ("toml", "reported"),
    [
        ('[profile.prod.serve.by_pag]\npath = "x.db"', "serve 'by_pag' is bound, but the app"),
        ('[profile.prod.serve.by_page]\nkind = "postgers"', "serve 'by_page' has kind 'postgers'"),
        ('[profile.prod.serve.by_page]\nkind = "redis"', "has kind 'redis' and no 'url'"),
        ("[profile.prod.serve.by_page]\nkind = 3", "'serve.by_page.kind'"),
        ('[profile.prod.serve.by_page]\npth = "x.db"', "'pth'"),
    ],
)
def test_what_is_wrong_with_a_store_of_a_profile_is_reported(
    tmp_path: Path, toml: str, reported: str
) -> None:
    bound = serving(tmp_path, toml)

    [fault] = bound.faults
    assert reported in str(fault)
    [serve] = bound.declared
    assert isinstance(serve, Serve)
    assert isinstance(serve.to[0], SQLite)


def test_a_source_bound_elsewhere_keeps_rename_unless_the_profile_has_its_own() -> None:
    in_code = source("orders", connector=Kafka("t", schema=SCHEMA, rename={"@timestamp": "at"}))
    elsewhere = '[profile.default.sources.orders]\nkind = "files"\npath = "in"\n'
    its_own = 'rename = { "time.of.order" = "at" }\n'

    kept, said = orders_of(elsewhere, in_code), orders_of(elsewhere + its_own, in_code)

    assert kept.connector == Files("in", schema=SCHEMA, rename={"@timestamp": "at"})
    assert said.connector == Files("in", schema=SCHEMA, rename={"time.of.order": "at"})


def test_a_profile_says_when_datasets_run_and_whether_a_source_is_landed() -> None:
    text = """
[profile.default.sources.orders]
live = true
trigger = "realtime"
[profile.default.tables.paid]
trigger = "30 seconds"
"""

    result = bound(text)

    orders, paid = result.declared
    assert result.faults == ()
    assert isinstance(orders, Source)
    assert (orders.live, orders.options.trigger, orders.connector) == (True, "realtime", IN_CODE)
    assert paid == table("paid", "orders", trigger="30 seconds")


def test_a_source_may_be_bound_elsewhere_and_run_otherwise_at_once() -> None:
    orders = orders_of(
        '[profile.default.sources.orders]\nkind = "kafka"\ntopic = "o"\ntrigger = "5 seconds"'
    )

    assert isinstance(orders.connector, Kafka)
    assert (orders.connector.topic, orders.options.trigger) == ("o", "5 seconds")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '[profile.default.sources.orders]\ntrigger = "soon"',
            "[VALUE_REFUSED] 'sources.orders.trigger' is 'soon'\n  at:  millstream.toml:2\n"
            '  fix: write one of "default", "once"',
        ),
        (
            '[profile.default.sources.orders]\nlive = "yes"',
            "[VALUE_REFUSED] 'sources.orders.live' is 'yes'\n  at:  millstream.toml:2\n"
            "  fix: write true or false",
        ),
        (
            '[profile.default.tables.paid]\nmode = "update"',
            "[UNKNOWN_KEY] 'mode' is no key of 'tables.paid'\n  at:  millstream.toml:2\n"
            "  fix: keys are batch, behind, failed_rows, freshness, keep_quarantined, "
            "keep_versions, trigger",
        ),
        (
            "[profile.default.sources.orders]\nlife = true",
            "[UNKNOWN_KEY] 'life' is no key of 'sources.orders'\n  at:  millstream.toml:2\n"
            "  fix: did you mean 'live'? ",
        ),
        (
            '[profile.default.tables.pade]\ntrigger = "once"',
            "[UNKNOWN_SOURCE] table 'pade' is bound, but the app does not declare it\n",
        ),
    ],
)
def test_what_is_wrong_with_how_a_dataset_runs_is_refused(text: str, found: str) -> None:
    [fault] = bound(text).faults

    assert str(fault).startswith(found)


def test_formats_of_a_profile_are_a_text_or_several() -> None:
    in_code = source("orders", connector=Files("in", schema=SCHEMA))
    section = "[profile.default.sources.orders]\n"

    one = orders_of(section + 'formats = { at = "epoch_ms" }\n', in_code)
    several = orders_of(section + 'formats.at = ["iso", "epoch_ms"]\n', in_code)

    assert one.connector == Files("in", schema=SCHEMA, formats={"at": "epoch_ms"})
    assert several.connector == Files("in", schema=SCHEMA, formats={"at": ("iso", "epoch_ms")})


def test_a_profile_says_how_fields_become_columns() -> None:
    schema = "id BIGINT, at TIMESTAMP, agent STRING, ip STRING, more MAP<STRING, STRING>"
    in_code = source("orders", connector=Files("in", schema=schema))
    text = """
[profile.default.sources.orders]
format = "csv"
rename = { "@timestamp" = "at", "user agent" = "agent", "client.ip" = "ip" }
rest = "more"
lenient = ["id"]
csv.header = true
csv.null_value = ["NA", "-"]
csv.decimal = ","
csv.thousands = "."
"""

    connector = orders_of(text, in_code).connector

    assert connector == Files(
        "in",
        "csv",
        schema,
        CsvOptions(header=True, null_value=("NA", "-"), decimal=",", thousands="."),
        rename={"@timestamp": "at", "user agent": "agent", "client.ip": "ip"},
        rest="more",
        lenient=("id",),
    )
    section = "[profile.default.sources.orders]\n"
    whole = orders_of(section + 'lenient = true\ncsv.null_value = "-"\n', in_code).connector
    assert whole == Files("in", "json", schema, CsvOptions(null_value="-"), lenient=True)


@pytest.mark.parametrize(
    ("keys", "time"),
    [
        ('event_time = "at"', ("at", None)),
        ('event_time = "timestamp_millis(id)"', ("event_time", "timestamp_millis(id)")),
        ('event_time = { "t s" = "at + INTERVAL 1 HOUR" }', ("t s", "at + INTERVAL 1 HOUR")),
        ('event_time."a.b" = "timestamp_millis(id)"', ("a.b", "timestamp_millis(id)")),
    ],
)
def test_a_profile_says_what_the_event_time_is(keys: str, time: tuple[str, str | None]) -> None:
    in_code = source("orders", connector=Files("in", schema=SCHEMA))
    section = "[profile.default.sources.orders]\n"

    found = orders_of(f'{section}{keys}\nwatermark = "5 minutes"\n', in_code)

    assert (found.event_time, found.event_time_from, found.watermark) == (*time, "5 minutes")


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("event_time = 3", "[VALUE_REFUSED] 'sources.orders.event_time' is 3 (an integer)"),
        ('event_time = { a = "x(y)", b = "x(z)" }', "[VALUE_REFUSED] 'sources.orders.event_time'"),
        ('watermark = "soon"', "[VALUE_REFUSED] 'sources.orders.watermark' is 'soon'"),
        ("lenient = 1", "[VALUE_REFUSED] 'sources.orders.lenient' is 1 (an integer)"),
        ("csv.null_value = 1", "[VALUE_REFUSED] 'sources.orders.csv.null_value' is 1 (an integer)"),
    ],
)
def test_a_profile_that_says_it_wrongly_is_refused(keys: str, found: str) -> None:
    [fault] = bound(f"[profile.default.sources.orders]\n{keys}\n").faults

    assert str(fault).startswith(found)
