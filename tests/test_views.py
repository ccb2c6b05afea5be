from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.graphs import AT, serve, source, table

from millstream.errors import fault
from millstream.lake.frontier import NOTHING_YET
from millstream.lake.home import Home
from millstream.lake.ledger import Ledger, SourceEntry
from millstream.lake.log import Facts
from millstream.model.trigger import Trigger
from millstream.observe import Event
from millstream.plan import Query
from millstream.run.supervise import Supervised
from millstream.views.json_text import to_json
from millstream.views.progress import DatasetView, EventView, look, work_done
from millstream.views.report import LedgerView

NOON_US = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()) * 1_000_000


@dataclass
class Held:
    """A query that stands still."""

    facts: Facts
    progress: dict[str, Any] | None = None
    name: str = "held"
    is_active: bool = True
    failure: BaseException | None = field(default=None)
    is_reported: bool = True
    commits_facts: bool = True
    waiting: int | None = None

    def progress_after(self, batch: int) -> tuple[dict[str, Any], ...]:
        return (self.progress,) if self.progress and self.progress["batchId"] > batch else ()

    def start(self, trigger: Trigger) -> None: ...
    def drain(self) -> None: ...
    def ask_to_stop(self) -> None: ...
    def stop(self) -> None: ...


def spoken(batch: int, *, rows: int, rate: float, **more: Any) -> dict[str, Any]:
    times = {"triggerExecution": 240}
    return {
        "batchId": batch,
        "numInputRows": rows,
        "inputRowsPerSecond": rate,
        "durationMs": times,
        **more,
    }


def landing(held: Held) -> Supervised:
    dataset = source("orders", event_time="at", watermark="10 minutes")
    return Supervised(Query("orders", "landing", dataset, ()), held, Trigger("default"), "running")


def stream(held: Held) -> Supervised:
    query = Query("paid", "stream", table("paid", "orders"), ("orders",))
    return Supervised(query, held, Trigger("default"), "running")


def test_a_source_shows_its_rates_its_watermark_and_what_was_set_aside() -> None:
    facts = Facts(batch=7, frontier=NOON_US).plus({"input": 100, "ok": 96, "late": 4})

    [view] = look([landing(Held(facts, spoken(7, rows=100, rate=50.0)))], {})

    assert view == DatasetView(
        "orders",
        "source",
        "default",
        "running",
        7,
        input_rate=50.0,
        output_rate=48.0,
        batch_ms=240,
        complete_to=datetime(2026, 11, 15, 12, tzinfo=UTC),
        verdicts={"late": 4},
        totals={"late": 4},
    )


def test_a_table_of_which_nothing_is_complete_has_no_moment() -> None:
    [view] = look([stream(Held(Facts(batch=0, frontier=NOTHING_YET)))], {})

    assert view.complete_to is None


def test_a_batch_is_shown_once_spark_has_spoken_of_it() -> None:
    held = Held(Facts(batch=1).plus({"written": 5}), spoken(1, rows=10, rate=10.0))
    query = stream(held)
    [first] = look([query], {})

    held.facts = Facts(batch=2).plus({"written": 9})
    [early] = look([query], {"paid": first})
    held.progress = spoken(2, rows=18, rate=4.0)
    [second] = look([query], {"paid": early})

    assert early == first
    assert (first.batch, first.input_rate, first.output_rate) == (1, 10.0, 5.0)
    assert (second.batch, second.input_rate, second.output_rate) == (2, 4.0, 2.0)


def test_the_first_batch_of_a_run_is_shown_once_spark_has_spoken_of_it() -> None:
    held = Held(Facts(batch=4))
    query = stream(held)
    [opened] = look([query], {})

    held.facts = Facts(batch=5).plus({"written": 5})
    [early] = look([query], {"paid": opened})

    assert (early.batch, early.input_rate) == (4, None)


def test_a_query_in_trouble_shows_it_with_the_batch_that_was_shown() -> None:
    held = Held(Facts(batch=1), spoken(1, rows=10, rate=10.0))
    query = stream(held)
    [first] = look([query], {})

    held.facts, query.state = Facts(batch=2), "restarting"
    [view] = look([query], {"paid": first})

    assert (view.batch, view.input_rate, view.state) == (1, 10.0, "restarting")


def test_the_last_look_shows_a_batch_that_spark_did_not_speak_of_without_rates() -> None:
    facts = Facts(batch=2).plus({"written": 9})

    [view] = look([stream(Held(facts, spoken(1, rows=10, rate=10.0)))], {})

    assert (view.batch, view.input_rate, view.output_rate, view.batch_ms) == (2, None, None, None)


def test_what_spark_never_speaks_of_is_shown_as_it_is() -> None:
    complete = table("paid", "orders", mode="complete")
    recomputed = Query("paid", "recompute", complete, ("orders",))
    served = Query("paid", "serve", serve("paid", "orders"), ("orders",))
    held, before = Held(Facts(batch=3)), DatasetView("paid", "table", "default", "running", 2)
    rowwise = Trigger("continuous", timedelta(seconds=1))

    for query in (
        Supervised(recomputed, held, Trigger("default"), "running"),
        Supervised(served, held, rowwise, "running"),
    ):
        [view] = look([query], {"paid": before})
        assert view.batch == 3


def test_a_batch_without_rows_that_closes_windows_has_an_output_rate() -> None:
    facts = Facts(batch=2).plus({"written": 12})

    [view] = look([stream(Held(facts, spoken(2, rows=0, rate=0.0)))], {})

    assert (view.input_rate, view.output_rate) == (0.0, 50.0)


def test_what_was_set_aside_is_reported_of_the_batch_and_in_total() -> None:
    facts = Facts(batch=6).plus({"input": 9, "ok": 2, "late": 7})
    facts = replace(facts, batch=7).plus({"input": 4, "ok": 4, "late": 0})

    [view] = look([landing(Held(facts, spoken(7, rows=4, rate=4.0)))], {})

    assert (view.verdicts, view.totals) == ({}, {"late": 7})


def test_the_first_batch_has_the_rate_it_was_processed_at() -> None:
    reported = spoken(0, rows=10, rate=0.0, processedRowsPerSecond=20.0)

    [view] = look([stream(Held(Facts(batch=0).plus({"written": 5}), reported))], {})

    assert (view.input_rate, view.output_rate) == (20.0, 10.0)


def test_rules_that_only_warn_are_counted_as_violations() -> None:
    facts = Facts(batch=0).plus({"input": 3, "written": 3, "rule: small": 2})

    [view] = look([stream(Held(facts))], {})

    assert view.verdicts == {"violations": 2}


def test_a_live_source_shows_the_verdicts_of_its_last_batch() -> None:
    counts = {"input": 5, "ok": 3, "late": 0, "future": 0, "malformed": 2, "rejected": 0}
    reported = spoken(0, rows=5, rate=5.0, observedMetrics={"clicks": counts})

    live, view = look([stream(Held(Facts(batch=0), reported))], {})

    assert (live.name, live.kind, live.verdicts) == ("clicks", "live", {"malformed": 2})
    assert live.totals is None
    assert view.name == "paid"


def test_a_stale_query_shows_it() -> None:
    query = stream(Held(Facts()))
    query.is_stale = True

    [view] = look([query], {})

    assert view.state == "stale"


def test_work_done_is_what_this_run_added() -> None:
    before = Facts(batch=4).plus({"input": 10, "ok": 10})
    query = landing(Held(Facts(batch=6).plus({"input": 25, "ok": 22})))

    [done] = work_done([query], {"orders": before})

    assert (done.batches, done.input, done.output) == (2, 15, 12)


def test_a_view_is_one_line_of_json_with_its_judgements() -> None:
    ledger = Ledger((SourceEntry("orders", 1, 3, {"ok": 2}),), ())

    shape = json.loads(to_json(LedgerView.of(Home.at("/h"), ledger)))

    entry = {"name": "orders", "batches": 1, "input": 3, "verdicts": {"ok": 2}}
    entry |= {"unreadable": 0, "blank": 0, "bent": 0}
    assert shape == {
        "home": "/h",
        "is_balanced": False,
        "is_complete": True,
        "troubles": {},
        "sources": [{**entry, "is_balanced": False}],
        "tables": [],
        "serves": [],
    }


def test_an_event_carries_its_fault() -> None:
    event = Event("query_failed", "paid", error=fault("KEY_MISSING", at=AT, table="paid"))

    shape = json.loads(to_json(EventView.of(event)))

    assert shape["kind"] == "query_failed"
    assert (shape["fault"]["code"], shape["fault"]["line"]) == ("KEY_MISSING", 7)
