"""The recorder writes what happens, reports objectives until it can, and stops nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.apps import wait_for
from tests.cli.conftest import commit
from tests.graphs import AT, graph, source, table
from tests.observe.test_collector import Reporting

from millstream.errors import OvertakenError, fault
from millstream.lake.home import Home
from millstream.lake.log import Facts
from millstream.model.reaction import Reaction
from millstream.observe import Event
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord, EventRecord, RunRecord
from millstream.observe.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from millstream.model.graph import Graph

RUN = RunRecord(2, datetime.now(UTC), 42, "here", "0.1", "ab12")
SHOP = graph(source("orders"), table("clean", "orders"))


class Scene:
    """A home, its recorder, and what it passes on."""

    def __init__(self, folder: Path, app: Graph = SHOP) -> None:
        self.home, self.events = Home.at(folder), list[Event]()
        self.home.prepare("shop", sources=["orders"])
        self.recorder = Recorder(app, self.home, RUN, self.events.append)
        self.history = History.read_only(self.home.history)

    def begin(self, notify: Callable[[Sequence[EventRecord]], bool] = lambda _: True) -> None:
        running: Any = Reporting()
        self.running = running
        self.recorder.begin([running], notify)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.history.events()]


def facts(batch: int, **counts: int) -> Facts:
    return replace(Facts(), batch=batch).plus({"input": 5, "written": 5, **counts})


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "home")


def test_a_commit_is_in_history_once_spark_has_reported_on_it(scene: Scene) -> None:
    scene.begin()
    scene.recorder.on_commit("clean", facts(0))
    scene.running.report(0)
    wait_for(lambda: scene.history.last("clean"))
    scene.recorder.on_commit("clean", facts(1))

    scene.recorder.end("stopped")

    assert [(b.batch, b.duration_ms) for b in scene.history.batches("clean")] == [
        (0, 100),
        (1, None),
    ]
    assert scene.kinds() == ["run_ended", "run_started"]
    [run] = scene.history.runs()
    assert (run.outcome, run.ended_at is not None) == ("stopped", True)


def test_what_a_killed_driver_did_not_record_is_read_from_the_tables(scene: Scene) -> None:
    for batch in range(4):
        commit(scene.home, "orders", {"ok": 3, "late": 1}, batch=batch)
    [first, *_] = [c for c in _batches(scene.home) if c.batch == 0]
    with HistoryWriter(scene.home.history) as writer:
        writer.write([replace(RUN, id=1), first])

    scene.begin()
    scene.recorder.end("stopped")

    found = scene.history.batches("orders")
    assert [(b.batch, b.output) for b in found] == [(n, 3) for n in range(4)]
    assert scene.kinds() == ["run_ended", "driver_died", "run_started"]


def _batches(home: Home) -> list[BatchRecord]:
    from millstream.observe.batch_record import missing_records

    found = missing_records(home, "orders", "source", None)
    return [record for record in found if isinstance(record, BatchRecord)]


def test_a_notice_that_cannot_be_entered_is_entered_at_a_later_look(tmp_path: Path) -> None:
    scene = Scene(tmp_path, graph(source("orders", failed_rows="1 %")))
    answers, sent = [False, True], list[list[str]]()

    def notify(records: Sequence[EventRecord]) -> bool:
        sent.append([record.kind for record in records])
        return answers.pop(0)

    scene.recorder.on_commit("orders", facts(0, malformed=3))
    scene.begin(notify)
    # The query is another, so that no report is waited for.
    with HistoryWriter(scene.home.history) as writer:
        at = datetime.now(UTC)
        writer.write([BatchRecord("orders", 0, at, input=5, counts={"malformed": 3})])
    wait_for(lambda: "failed_rows" in scene.kinds())
    scene.recorder.end("stopped")

    assert sent == [["failed_rows"], ["failed_rows"]]
    assert scene.kinds().count("failed_rows") == 1


def test_an_overtaken_driver_reports_nothing_and_goes_on_recording(tmp_path: Path) -> None:
    scene = Scene(tmp_path, graph(source("orders", failed_rows="1 %"), table("clean", "orders")))
    asked = list[int]()

    def notify(_: Sequence[EventRecord]) -> bool:
        asked.append(1)
        raise fault("OVERTAKEN", theirs=3, mine=2, table="home")

    scene.begin(notify)
    with HistoryWriter(scene.home.history) as writer:
        at = datetime.now(UTC)
        writer.write([BatchRecord("orders", 0, at, input=5, counts={"malformed": 3})])
    wait_for(lambda: asked)
    scene.recorder.on_commit("clean", facts(0))
    scene.recorder.end("overtaken", fault("OVERTAKEN", theirs=3, mine=2, table="home"))

    assert isinstance(fault("OVERTAKEN", theirs=3, mine=2, table="home"), OvertakenError)
    assert scene.history.last("clean") is not None
    assert scene.kinds()[:2] == ["run_ended", "run_failed"]
    assert "failed_rows" not in scene.kinds()


def test_functions_are_called_with_the_events_they_name_and_none_stops_another(
    tmp_path: Path,
) -> None:
    seen = list[tuple[str, str]]()

    def broken(event: EventRecord) -> None:
        raise LookupError(event.kind)

    def note(event: EventRecord) -> None:
        seen.append((event.kind, event.dataset))

    reactions = (Reaction(("query_failed",), broken, AT), Reaction(("query_failed",), note, AT))
    scene = Scene(tmp_path, replace(SHOP, reactions=reactions))
    scene.begin()

    scene.recorder.on_event(Event("restarting", "clean"))
    scene.recorder.on_event(Event("query_failed", "clean"))
    scene.recorder.end("failed")

    assert seen == [("query_failed", "clean")]
    [raised] = [event.error for event in scene.events if event.kind == "reaction_failed"]
    assert raised is not None
    assert "LookupError: query_failed" in raised.what
    assert {"restarting", "query_failed", "reaction_failed"} <= set(scene.kinds())


def test_a_run_that_never_began_is_recorded_with_its_error(scene: Scene) -> None:
    scene.recorder.end("failed", fault("KEY_MISSING", at=AT, table="clean"))

    [run] = scene.history.runs()
    assert run.outcome == "failed"
    [failed] = [event for event in scene.history.events() if event.kind == "run_failed"]
    assert (failed.code, failed.file, failed.line) == ("KEY_MISSING", AT.file, AT.line)
