"""Prometheus reads the metrics, and the shipped dashboard and rules name metrics that exist."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text
from tests.graphs import graph, source, table
from tests.views.test_overview import NOW, ago, batch, orders, overview, run

from millstream.lake.home import Home
from millstream.observe.dashboards import DASHBOARD, RULES
from millstream.observe.history import History
from millstream.observe.record import BatchRecord, EventRecord
from millstream.views.metrics import metrics_text

APP = graph(source("orders"), table("clean", "orders"))
PAGE = Path(__file__).parents[2] / "docs/reference/metrics.md"
STRANGE = 'a "quoted" \\ name\nof two lines: ☃'


def written(home: Path, accept: str = "application/openmetrics-text") -> str:
    clean = BatchRecord(
        "clean",
        4,
        ago(1),
        duration_ms=1200,
        phases={"addBatch": 1000, "walCommit": 200},
        input=100,
        output=90,
        counts={"input": 100, "written": 90, "quarantined": 10, f"rule: {STRANGE}": 10},
        watermark=ago(60),
        complete_to=ago(70),
        state_rows=7,
        state_bytes=4096,
        total=90,
        read={"orders": 80},
    )
    slow = replace(clean, batch=5, at=NOW, duration_ms=400_000)
    late = batch("orders", 10, NOW, counts={"ok": 9, "late": 1}, total=109)
    restart = EventRecord(ago(1), "restarting", "clean", code="STORE_UNREACHABLE")
    view = overview(home, run(), *orders(), late, clean, slow, restart, of=APP)
    text, content_type = metrics_text(view, History(Home.at(home).history).totals(), accept)
    assert content_type.startswith(accept.partition(";")[0])
    return text


def samples(text: str) -> dict[tuple[str, str], list[Any]]:
    found: dict[tuple[str, str], list[Any]] = {}
    for family in open_metrics(text):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            found.setdefault((sample.name, sample.labels.get("dataset", "")), []).append(sample)
    return found


def test_every_number_is_the_one_of_the_views(tmp_path: Path) -> None:
    found = samples(written(tmp_path))

    def value(name: str, dataset: str = "clean", **labels: str) -> float:
        [sample] = [
            s for s in found[f"millstream_{name}", dataset] if labels.items() <= s.labels.items()
        ]
        return float(sample.value)

    assert value("input_rows_total") == 200
    assert value("output_rows_total") == 180
    assert value("batches_total", status="committed") == 2
    assert value("batch_duration_seconds_bucket", le="2.5") == 1
    assert value("batch_duration_seconds_bucket", le="+Inf") == 2
    assert value("batch_duration_seconds_sum") == 401.2
    assert value("batch_phase_seconds_total", phase="addBatch") == 2
    assert value("source_lag_records") == 29
    assert value("event_time_watermark_timestamp_seconds") == ago(60).timestamp()
    assert value("last_commit_timestamp_seconds") == NOW.timestamp()
    assert (value("state_rows"), value("state_bytes")) == (7, 4096)
    assert value("late_rows_dropped_total", "orders") == 1
    assert value("expectation_rows_total", expectation=STRANGE, result="fail") == 20
    assert value("expectation_rows_total", expectation=STRANGE, result="pass") == 180
    assert value("restarts_total", reason="STORE_UNREACHABLE") == 1
    assert value("stream_up") == 1
    assert value("driver_up", "") == 1
    assert value("dataset_health", millstream_dataset_health="behind") == 0


@pytest.mark.parametrize("accept", ["text/plain;version=0.0.4", "application/openmetrics-text"])
def test_both_formats_are_read_by_prometheus(tmp_path: Path, accept: str) -> None:
    parse = open_metrics if "open" in accept else plain_text

    families = list(parse(written(tmp_path, accept)))

    assert {"millstream_source_lag_records", "millstream_stream_up"} <= {f.name for f in families}


def test_an_app_without_history_has_metrics_too(tmp_path: Path) -> None:
    view = overview(tmp_path, of=APP, runs=False)

    text, _ = metrics_text(view, {})

    assert samples(text)["millstream_driver_up", ""][0].value == 0


@pytest.mark.parametrize("file", [DASHBOARD, RULES], ids=lambda file: str(file.name))
def test_every_expression_names_metrics_and_labels_that_exist(tmp_path: Path, file: Path) -> None:
    found = samples(written(tmp_path))
    names = {name for name, _ in found}
    labels = {label for group in found.values() for s in group for label in s.labels}
    text = file.read_text()
    quoted = re.findall(r'"expr": ("(?:\\.|[^"\\])+")', text)
    expressions = [json.loads(e) for e in quoted] or re.findall(r"expr: (.+)", text)

    assert len(expressions) >= 8
    for expression in expressions:
        used = re.findall(r"\bmillstream_\w+", expression)
        assert used
        assert set(used) <= names, expression
        for matched in re.findall(r"(\w+)=~?\"", expression) + [
            label for by in re.findall(r"by \(([^)]+)\)", expression) for label in by.split(", ")
        ]:
            assert matched in labels, expression


def test_the_reference_page_lists_every_metric(tmp_path: Path) -> None:
    suffix = {"counter": "_total", "info": "_info"}
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \|.*\| (.+) \|$", PAGE.read_text(), re.MULTILINE)

    families = open_metrics(written(tmp_path))  # type: ignore[no-untyped-call]

    assert listed == [
        (f"{f.name}{suffix.get(f.type, '')}", f.type, f.documentation) for f in families
    ]
