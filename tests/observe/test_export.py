"""Traces and lineage reach a server as their own clients send them, and delay nothing."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.graphs import graph, serve, source, table, view

from millstream.app import App
from millstream.lake.home import Home
from millstream.observe import Event
from millstream.observe.background import Background
from millstream.observe.export import Export, exporters
from millstream.observe.record import BatchRecord, EventRecord, RunRecord
from millstream.systems.memory.source import Memory
from millstream.testing.hook import Hook, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
SHOP = graph(
    source("orders"), view("right", "orders"), table("clean", "right"), serve("shown", "clean")
)
RUN = RunRecord(7, AT, 42, "here", "0.1", "ab12", "c0ffee")
BATCH = BatchRecord(
    "clean",
    3,
    AT,
    run=7,
    duration_ms=100,
    phases={"addBatch": 70, "getBatch": 20},
    input=5,
    output=4,
    counts={"written": 4, "dropped": 1},
)
FAILED = EventRecord(AT, "query_failed", "clean", code="UDF_RAISED", what="it raised", fix="see")


class Collector:
    """A collector of spans, as OpenTelemetry's own speaks."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:  # noqa: N805
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                for found in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self.resources.append(found.resource)
                    self.spans += [span for scope in found.scope_spans for span in scope.spans]
                handler.send_response(200)
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            def log_message(handler, *_: object) -> None:  # noqa: N805
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()
    address = f"http://127.0.0.1:{collector.server.server_address[1]}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    with Hook() as hook:
        monkeypatch.setenv("OPENLINEAGE_URL", hook.address)
        yield hook


def export(home: Path, *records: BatchRecord | EventRecord) -> list[Event]:
    events = list[Event]()
    exported = Export(lambda: exporters(SHOP, Home.at(home), RUN), events.append)
    for record in records:
        exported.add(record)
    exported.close()
    return events


def facts(span: Any) -> dict[str, Any]:
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


def test_a_batch_is_a_span_with_one_for_each_phase(tmp_path: Path, collector: Collector) -> None:
    assert export(tmp_path, BATCH, FAILED) == []

    by_name = {span.name: span for span in collector.spans}
    assert sorted(by_name) == ["addBatch", "clean batch", "getBatch", "query_failed"]
    whole, first, second = (by_name[n] for n in ("clean batch", "getBatch", "addBatch"))
    began = round((AT - timedelta(milliseconds=100)).timestamp() * 1000)
    times = [(s.start_time_unix_nano, s.end_time_unix_nano) for s in (whole, first, second)]
    assert [tuple(ns // 1_000_000 - began for ns in pair) for pair in times] == [
        (0, 100),
        (0, 20),
        (20, 90),
    ]
    assert {first.parent_span_id, second.parent_span_id} == {whole.span_id}
    assert facts(whole)["millstream.dataset"] == "clean"
    assert facts(whole)["millstream.rows.dropped"] == 1
    failed = by_name["query_failed"]
    assert (failed.status.message, facts(failed)["millstream.code"]) == ("it raised", "UDF_RAISED")
    assert {"service.name": "shop", "service.instance.id": "7"}.items() <= {
        a.key: a.value.string_value for a in collector.resources[0].attributes
    }.items()


def test_each_query_is_a_job_with_what_it_reads_and_writes(tmp_path: Path, hook: Hook) -> None:
    assert export(tmp_path, BATCH, BATCH) == []

    sent = [request.body for request in hook.received]
    assert {request.path for request in hook.received} == {"/api/v1/lineage"}
    assert [(e["eventType"], e["job"]["name"]) for e in sent] == [
        *(("START", name) for name in ("orders", "clean", "shown")),
        *(("COMPLETE", name) for name in ("orders", "clean", "shown")),
    ]
    start, complete = (event for event in sent if event["job"]["name"] == "clean")
    tables = f"{tmp_path}/tables"
    assert [i["name"] for i in complete["inputs"]] == [f"{tables}/orders"]
    assert [o["name"] for o in complete["outputs"]] == [f"{tables}/clean"]
    assert complete["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 8
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert complete["job"]["namespace"] == "shop"
    location = complete["job"]["facets"]["sourceCodeLocation"]
    assert (location["url"], location["version"]) == ("app.py#L7", "c0ffee")


def test_columns_of_an_answer_in_sql_are_traced_to_what_it_reads(
    tmp_path: Path, hook: Hook
) -> None:
    app = App("shop")
    app.source(name="orders")(lambda: Memory("id BIGINT, price DOUBLE"))
    app.source(name="rates")(lambda: Memory("currency STRING, rate DOUBLE"))
    app.sql_view("priced", "SELECT id, price * 100 AS cents FROM orders")
    query = (
        "SELECT p.id, SUM(p.cents * r.rate) AS total, 1 AS one FROM priced p, rates r GROUP BY 1"
    )
    app.sql("sales", query)
    home = Home.at(tmp_path)
    columns = {"orders": "id price", "rates": "currency rate", "sales": "id total one"}
    for name, names in columns.items():
        rows = pa.table({column: pa.array([], pa.float64()) for column in names.split()})
        write_deltalake(str(home.table(name)), rows)

    exported = Export(lambda: exporters(app.graph, home, RUN), lambda _: None)
    exported.add(BATCH)
    exported.close()

    sent = [request.body for request in hook.received]
    [sales] = [e for e in sent if (e["eventType"], e["job"]["name"]) == ("COMPLETE", "sales")]
    facets = sales["outputs"][0]["facets"]
    assert [(f["name"], f["type"]) for f in facets["schema"]["fields"]] == [
        (name, "double") for name in ("id", "total", "one")
    ]
    traced = {
        column: [
            (field["name"].rpartition("/")[2], field["field"]) for field in found["inputFields"]
        ]
        for column, found in facets["columnLineage"]["fields"].items()
    }
    assert traced == {
        "id": [("orders", "id")],
        "total": [("orders", "price"), ("rates", "rate")],
    }


def test_a_query_that_failed_ends_so(tmp_path: Path, hook: Hook) -> None:
    export(tmp_path, FAILED)

    ends = {
        e["job"]["name"]: e for e in (r.body for r in hook.received) if e["eventType"] != "START"
    }
    assert {name: e["eventType"] for name, e in ends.items()} == {
        "orders": "COMPLETE",
        "clean": "FAIL",
        "shown": "COMPLETE",
    }
    assert ends["clean"]["run"]["facets"]["errorMessage"]["message"] == "it raised"


def test_a_server_that_refuses_is_reported_once_and_stops_nothing(
    tmp_path: Path, hook: Hook
) -> None:
    hook.replies.extend([Reply(403)] * 9)

    events = export(tmp_path, BATCH)

    assert [event.kind for event in events] == ["export_failed"]


def test_without_the_variables_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[int]()
    exported = Export(lambda: made.append(1) or (), lambda _: None)  # type: ignore[func-returns-value]

    exported.add(BATCH)
    exported.close()

    assert made == []


def test_what_finds_the_queue_full_is_left_out_and_the_rest_is_worked_off() -> None:
    begun, go_on, done, ended = threading.Event(), threading.Event(), list[int](), list[str]()

    def work(item: int) -> None:
        begun.set()
        go_on.wait()
        done.append(item)

    background = Background("test", work, most=2, at_end=lambda: ended.append("over"))
    assert background.put(0)
    begun.wait()

    assert [background.put(n) for n in (1, 2, 3)] == [True, True, False]
    go_on.set()
    background.close()
    assert (done, ended) == ([0, 1, 2], ["over"])
