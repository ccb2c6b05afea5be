from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Unpack

import pytest
from tests.faults import raises

import millstream as ms
from millstream.lake.ledger import read_ledger
from millstream.systems.kafka.settings import Kafka
from millstream.systems.kafka.source import TopicSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.declare.options import SourceOptions
    from millstream.lake.ledger import SourceEntry
    from millstream.observe import Event
    from millstream.testing.kafka import Broker, Topics

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

IMPATIENT = {"kafka.request.timeout.ms": 500, "kafka.default.api.timeout.ms": 1000}


def app_of(connector: Kafka, home: Path, **options: Unpack[SourceOptions]) -> ms.App:
    app = ms.App("shop", home=home)

    @app.source(**options)
    def orders() -> Kafka:
        return connector

    return app


def run_once(app: ms.App) -> ms.App:
    app.run(once=True, fail_fast=True)
    return app


def numbered(numbers: range) -> list[str]:
    return [f'{{"n": {n}}}' for n in numbers]


def column(app: ms.App, name: str, table: str = "orders") -> list[Any]:
    return sorted(row[name] for row in app.read(table).select(name).collect())


def entry_of(app: ms.App, source: str = "orders") -> SourceEntry:
    [entry] = [entry for entry in read_ledger(app.home()).sources if entry.name == source]
    return entry


def wait_until(is_so: Callable[[], bool], within_s: float = 90) -> None:
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.fixture(scope="module")
def landed(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path_factory: pytest.TempPathFactory
) -> ms.App:
    topics.create("landed", partitions=2)
    topics.send("landed", '{"n": 1}', '{"n": "one"}', None, b"\xff{}", b"")
    topics.send("landed", '{"n": 2}', '{"n": 3}', partition=1)
    topics.send_and_abort("landed", '{"n": 98}', '{"n": 99}')
    topics.send("landed", '{"n": 4}')
    connector = Kafka("landed", broker.servers, schema="n INT")
    return run_once(app_of(connector, tmp_path_factory.mktemp("landed")))


def test_json_values_land_as_ok_with_their_partition_and_offset(landed: ms.App) -> None:
    rows = landed.read("orders").where("_verdict = 'ok'").select("n", "_origin", "_position")

    *others, (last, origin, position) = sorted(map(tuple, rows.collect()))

    assert others == [(1, "landed/0", 0), (2, "landed/1", 0), (3, "landed/1", 1)]
    assert (last, origin) == (4, "landed/0")
    assert position in (7, 8)  # the broker marks the end of the aborted ones when it gets to it


def test_values_that_are_not_as_the_schema_says_land_as_malformed_with_their_exact_bytes(
    landed: ms.App,
) -> None:
    rows = landed.read("orders").where("_verdict = 'malformed'").orderBy("_position")

    assert [
        (row._position, row._reason, row._raw if row._raw is None else bytes(row._raw))
        for row in rows.collect()
    ] == [
        (1, "expected int, got string, at $.n", b'{"n": "one"}'),
        (2, "null record", None),
        (3, "not UTF-8: invalid start byte (byte 0)", b"\xff{}"),
        (4, "empty record", b""),
    ]


def test_records_of_an_aborted_transaction_never_appear(landed: ms.App) -> None:
    entry = entry_of(landed)

    assert entry.input == 8
    assert entry.is_balanced
    assert not {98, 99} & {row.n for row in landed.read("orders").collect()}


def test_text_is_cut_by_the_rate_limit_and_a_restart_continues_where_it_stopped(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("lines")
    connector = Kafka("lines", broker.servers, format="text", options={"maxOffsetsPerTrigger": 2})

    topics.send("lines", "a", "b", "c", "d", "é")
    first = run_once(app_of(connector, tmp_path))
    batches = column(first, "_batch")
    topics.send("lines", "f", "g")
    second = run_once(app_of(connector, tmp_path))

    assert batches == [0, 0, 1, 1, 2]
    assert column(second, "value") == ["a", "b", "c", "d", "f", "g", "é"]
    assert column(second, "_batch") == [0, 0, 1, 1, 2, 3, 3]


def test_a_live_topic_feeds_a_table_with_its_right_rows(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("live")
    topics.send("live", '{"n": 1}', "nonsense", None, '{"n": 2}')
    app = app_of(Kafka("live", broker.servers, schema="n INT"), tmp_path, live=True)

    @app.table()
    def doubled(orders: DataFrame) -> DataFrame:
        return orders.selectExpr("n * 2 AS n")

    run_once(app)

    assert column(app, "n", "doubled") == [2, 4]


@pytest.mark.parametrize("live", [False, True])
def test_a_topic_that_does_not_exist_is_reported_with_the_nearest_name(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path, live: bool
) -> None:
    topics.create(f"payments-{live}")
    app = app_of(Kafka(f"paymnts-{live}", broker.servers), tmp_path, live=live)
    app.sql("copied", "SELECT * FROM orders")

    with raises("TOPIC_MISSING") as refused:
        app.run(once=True)

    assert str(refused.value) == (
        f"[TOPIC_MISSING] source 'orders': topic 'paymnts-{live}' does not exist"
        f" at {broker.servers}\n"
        f"  at:  {app.graph.datasets['orders'].at}\n"
        f"  fix: did you mean 'payments-{live}'? create the topic, or correct its name"
    )


@pytest.mark.parametrize(
    ("servers", "why"),
    [
        ("127.0.0.1:1", ""),
        ("nowhere.invalid:1", ": No resolvable bootstrap urls given in bootstrap.servers"),
        ("no port", ": Invalid url in bootstrap.servers: no port"),
    ],
)
def test_a_broker_that_does_not_answer_is_reported_before_anything_starts(
    spark: SparkSession, tmp_path: Path, servers: str, why: str
) -> None:
    app = app_of(Kafka("orders", servers, options=IMPATIENT), tmp_path)

    with raises("BROKER_UNREACHABLE") as refused:
        app.run(once=True)

    assert str(refused.value) == (
        f"[BROKER_UNREACHABLE] source 'orders': no Kafka broker answers at {servers}{why}\n"
        f"  at:  {app.graph.datasets['orders'].at}\n"
        "  fix: start the broker, or correct bootstrap_servers"
    )
    assert not app.home().checkpoint("orders").exists()


def test_records_that_kafka_deleted_before_they_were_read_stop_the_query_for_good(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("anew")
    topics.send("anew", *numbered(range(3)))
    app = run_once(app_of(Kafka("anew", broker.servers, schema="n INT"), tmp_path))
    topics.delete("anew")
    topics.create("anew")

    with raises("RECORDS_LOST") as stopped:
        app.run(once=True)

    assert str(stopped.value) == (
        "[RECORDS_LOST] query 'orders': Kafka no longer has the records that come next:"
        " Partition anew-0 offset was changed from 3 to 0\n"
        f"  at:  {app.graph.datasets['orders'].at}\n"
        "  fix: bring the topic back, or set the option failOnDataLoss=False "
        "to continue without them"
    )


@pytest.mark.slow
def test_a_broker_killed_while_the_app_reads_costs_no_row_and_doubles_none(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("killed", partitions=2)
    topics.send("killed", *numbered(range(100)))
    topics.send("killed", *numbered(range(100, 200)), partition=1)
    limited = {"maxOffsetsPerTrigger": 25}
    app = app_of(Kafka("killed", broker.servers, schema="n INT", options=limited), tmp_path)

    app.start(trigger="1 second")
    wait_until(lambda: entry_of(app).input >= 50)
    broker.kill()
    landed_at_kill = entry_of(app).input
    broker.restart()
    topics.send("killed", *numbered(range(200, 250)))
    wait_until(lambda: entry_of(app).input >= 250)
    app.stop()

    assert landed_at_kill < 200
    assert entry_of(app).input == 250
    assert entry_of(app).is_balanced
    assert column(app, "n") == list(range(250))


def test_a_source_reads_much_at_once_and_gives_a_lost_broker_up_soon_by_default() -> None:
    ours = TopicSource(Kafka("orders")).options
    theirs = TopicSource(Kafka("orders", options={"kafka.request.timeout.ms": 30_000})).options

    assert ours["kafka.max.poll.records"] == 10_000
    assert ours["kafka.max.partition.fetch.bytes"] == 8 << 20
    assert ours["kafka.fetch.max.bytes"] == 64 << 20
    # Kafka's client refuses an API timeout below the request timeout.
    assert ours["kafka.default.api.timeout.ms"] >= ours["kafka.request.timeout.ms"]  # type: ignore[operator]
    assert not {"kafka.default.api.timeout.ms", "kafka.request.timeout.ms"} & theirs.keys()


@pytest.mark.slow
def test_an_outage_of_the_broker_is_reported_other_queries_go_on_and_it_continues_after_it(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("outage")
    topics.send("outage", *numbered(range(3)))
    app = app_of(Kafka("outage", broker.servers, schema="n INT"), tmp_path)
    app.source(name="ticks")(lambda: ms.Generator("n BIGINT"))
    reported: list[Event] = []
    running = app.open({}, on_event=reported.append)
    serving = threading.Thread(target=running.serve, daemon=True)

    serving.start()
    wait_until(lambda: entry_of(app).input == 3)
    broker.kill()
    wait_until(lambda: any(event.kind == "restarting" for event in reported))
    others = entry_of(app, "ticks").input
    wait_until(lambda: entry_of(app, "ticks").input > others)
    broker.restart()
    topics.send("outage", *numbered(range(3, 6)))
    wait_until(lambda: entry_of(app).input == 6)
    running.ask_to_stop()
    serving.join()

    assert str(next(event.error for event in reported if event.error)) == (
        "[BROKER_LOST] query 'orders': no Kafka broker answers any more;"
        " what was committed is safe\n"
        f"  at:  {app.graph.datasets['orders'].at}\n"
        "  fix: start the broker: the run continues by itself, or start it again"
    )
    assert column(app, "n") == list(range(6))


def test_raw_records_land_with_all_that_kafka_knows_of_them(
    topics: Topics, broker: Broker, tmp_path: Path
) -> None:
    topics.create("raw")
    topics.send("raw", b"\x00\xff", "two", None)
    app = run_once(app_of(Kafka("raw", broker.servers, format="raw"), tmp_path))

    rows = app.read("orders").orderBy("offset").collect()
    assert [row.value and bytes(row.value) for row in rows] == [b"\x00\xff", b"two", None]
    assert [(row.topic, row.offset, row._position, row._verdict) for row in rows] == [
        ("raw", n, n, "ok") for n in range(3)
    ]
    assert all(row.timestamp is not None for row in rows)


def test_a_preview_shows_what_a_topic_holds_wherever_the_app_would_begin(
    landed: ms.App, broker: Broker, tmp_path: Path
) -> None:
    latest = Kafka("landed", broker.servers, schema="n INT", starting_offsets="latest")

    preview = app_of(latest, tmp_path / "home").preview("orders")

    assert sorted(row.n for row in preview.frame.collect()) == [1, 2, 3, 4]
    assert preview.samples[0].verdicts == {"ok": 4, "malformed": 4}
    assert preview.samples[0].aside[0].place == "landed/0:1"
