"""Every commit is recorded once and in order, whenever Spark reports on it, or if it never does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st
from tests.graphs import graph, source, table

from millstream.lake.home import Home
from millstream.lake.log import Facts
from millstream.observe.collector import Collector, Committed
from millstream.observe.progress import Progress

if TYPE_CHECKING:
    from millstream.observe.record import BatchRecord

SHOP = graph(source("orders"), table("clean", "orders"))
NEVER, AT_ONCE = float("inf"), 0.0


@dataclass
class Reporting:
    """A query on whose batches Spark reports when a test says so."""

    name: str = "clean"
    reports: dict[int, dict[str, Any]] = field(default_factory=dict)
    is_reported: bool = True
    commits_facts: bool = True
    waiting: int | None = None

    def progress_after(self, batch: int) -> tuple[dict[str, Any], ...]:
        return tuple(report for n, report in sorted(self.reports.items()) if n > batch)

    def report(self, batch: int) -> None:
        self.reports[batch] = report(batch)


def report(batch: int, **more: Any) -> dict[str, Any]:
    durations = {"triggerExecution": 100 + batch, "addBatch": 90, "getBatch": 0}
    return {
        "batchId": batch,
        "timestamp": "2026-05-01T12:00:00.000Z",
        "durationMs": durations,
        **more,
    }


def committed(batch: int, until: float = NEVER) -> Committed:
    facts = replace(Facts(), batch=batch).plus({"input": 5, "written": 4, "dropped": 1})
    return Committed("clean", facts, datetime.now(UTC), until)


@given(st.data())
def test_every_commit_is_recorded_once_and_in_order(data: st.DataObject) -> None:
    collector, running = Collector(SHOP, Home.at("/nowhere"), 1), Reporting()
    planned = iter(range(9))
    to_report = list[int]()
    seen: list[BatchRecord] = []
    for _ in range(data.draw(st.integers(0, 30))):
        match data.draw(st.sampled_from(["commit", "report", "look"])):
            case "commit" if (batch := next(planned, None)) is not None:
                collector.add(committed(batch, data.draw(st.sampled_from([NEVER, AT_ONCE]))))
                to_report.append(batch)
            case "report" if to_report:
                batch = to_report.pop(0)
                # Spark forgets reports, and loses some.
                if data.draw(st.booleans()):
                    running.report(batch)
            case "look":
                seen += collector.records([running], is_last=False)
    seen += collector.records([running], is_last=True)

    done = next(planned, 9)
    assert [record.batch for record in seen] == list(range(done))
    for record in seen:
        assert record.duration_ms in (None, 100 + record.batch)
        assert (record.input, record.output, record.run) == (5, 4, 1)


def test_a_commit_waits_for_its_report_and_those_after_it_wait_too() -> None:
    collector, running = Collector(SHOP, Home.at("/nowhere"), 1), Reporting()
    collector.add(committed(0))
    collector.add(committed(1))
    running.report(1)

    assert list(collector.records([running], is_last=False)) == []
    running.report(0)

    records = collector.records([running], is_last=False)
    assert [(r.batch, r.duration_ms, r.phases) for r in records] == [
        (0, 100, {"addBatch": 90}),
        (1, 101, {"addBatch": 90}),
    ]


def test_what_a_live_source_gave_is_a_batch_of_it() -> None:
    live = graph(source("clicks", live=True), table("clean", "clicks"), table("more", "clicks"))
    collector = Collector(live, Home.at("/nowhere"), 1)
    observed = {"clicks": {"input": 7, "ok": 5, "malformed": 2, "late": 0}}
    clean = Reporting(reports={0: report(0, observedMetrics=observed)})
    more = Reporting("more", {0: report(0, observedMetrics=observed)})
    collector.add(committed(0))
    collector.add(replace(committed(0), name="more"))

    records = list(collector.records([clean, more], is_last=False))

    assert [r.dataset for r in records] == ["clean", "clicks", "more"]
    assert (records[1].input, records[1].output) == (7, 5)
    assert records[1].counts == {"input": 7, "ok": 5, "malformed": 2}


DELTA = {
    "description": "DeltaSource[file:/srv/shop/tables/orders%20x]",
    "endOffset": {"sourceVersion": 1, "reservoirId": "a", "reservoirVersion": 8, "index": -1},
}
KAFKA = {"description": "KafkaV2[Subscribe[t]]"}


@pytest.mark.parametrize(
    ("found", "unread", "versions"),
    [
        ([DELTA], None, {"orders x": 7}),
        (
            [
                {
                    **KAFKA,
                    "endOffset": {"t": {"0": 5, "1": 9}},
                    "latestOffset": {"t": {"0": 8, "1": 9}},
                }
            ],
            3,
            {},
        ),
        ([{**KAFKA, "endOffset": {"t": {"0": 5}}, "latestOffset": {"t": {"0": 5}}}], 0, {}),
        (
            [{**KAFKA, "endOffset": {"t": {"0": 5}}, "latestOffset": {"t": {"0": 5, "1": 4}}}],
            None,
            {},
        ),
        ([{"description": "Files", "endOffset": {"logOffset": 1}, "latestOffset": None}], None, {}),
        ([{"description": "Rate", "endOffset": 4, "latestOffset": 9}], None, {}),
    ],
)
def test_what_is_not_read_is_known_from_offsets_that_are_numbers(
    found: list[dict[str, Any]], unread: int | None, versions: dict[str, int]
) -> None:
    progress = Progress.of(report(1, sources=found))

    assert (progress.unread, progress.versions) == (unread, versions)
