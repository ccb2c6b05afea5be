"""An objective is an event when it is no longer met, and one when it is met again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st
from tests.graphs import graph, source, table

from millstream.model.objective import EXPECTED, is_objective, parse_rows, parse_share
from millstream.observe.expectation_watch import ExpectationWatch
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.objective_watch import ObjectiveWatch
from millstream.observe.record import BatchRecord

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.model.graph import Graph

NOW = datetime.now(UTC).replace(microsecond=0)


class Scene:
    """An app whose batches and looks are at given seconds."""

    def __init__(self, path: Path, app: Graph) -> None:
        self.writer, self.history = HistoryWriter(path), History.read_only(path)
        self.app, self.batches = app, 0
        self.watch = ObjectiveWatch(app, self.history, 1)

    def batch(self, second: float, **facts: Any) -> None:
        at = NOW + timedelta(seconds=second)
        record = BatchRecord("orders", self.batches, at, **{"input": 100, "output": 100, **facts})
        assert self.writer.write([record])
        self.batches += 1

    def look(self, second: float) -> list[tuple[str, str | None]]:
        found = list(self.watch.look(NOW + timedelta(seconds=second)))
        assert self.writer.write(found)
        return [(event.kind, event.code) for event in found]

    def restart(self) -> None:
        self.watch = ObjectiveWatch(self.app, self.history, 2)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    orders = source("orders", freshness="1 minute", failed_rows="5 %")
    return Scene(tmp_path / "history.db", graph(orders, table("clean", "orders")))


def test_an_objective_is_reported_once_until_it_is_met_for_a_while(scene: Scene) -> None:
    scene.batch(0)

    assert scene.look(60) == []
    assert scene.look(61) == [("stale", "freshness")]
    assert scene.look(200) == []
    scene.batch(200)
    assert scene.look(201) == []
    assert scene.look(220) == []
    assert scene.look(232) == [("recovered", "freshness")]
    assert scene.look(233) == []


def test_an_objective_that_is_not_met_again_meanwhile_does_not_recover(scene: Scene) -> None:
    scene.batch(0)
    assert scene.look(61) == [("stale", "freshness")]
    scene.batch(62)
    assert scene.look(63) == []
    assert scene.look(123) == []
    scene.batch(124)
    assert scene.look(125) == []
    assert scene.look(154) == []
    assert scene.look(155) == [("recovered", "freshness")]


def test_a_driver_that_starts_goes_on_from_history(scene: Scene) -> None:
    scene.batch(0)
    assert scene.look(61) == [("stale", "freshness")]

    scene.restart()

    assert scene.look(100) == []
    scene.batch(101)
    assert scene.look(102) == []
    assert scene.look(140) == [("recovered", "freshness")]
    scene.restart()
    assert scene.look(141) == []


def test_objectives_of_one_dataset_are_apart(scene: Scene) -> None:
    scene.batch(0, counts={"malformed": 6})

    assert scene.look(1) == [("failed_rows", "failed_rows")]
    assert scene.look(61) == [("stale", "freshness")]
    scene.batch(62, input=1000)
    assert scene.look(63) == []
    assert scene.look(93) == [("recovered", "failed_rows"), ("recovered", "freshness")]


def test_a_dataset_that_has_had_no_batch_meets_its_objectives(scene: Scene) -> None:
    assert scene.look(10**6) == []


def test_rows_that_begin_to_break_a_rule_are_one_event() -> None:
    watch = ExpectationWatch()

    def event(second: float, **counts: int) -> str | None:
        at, named = NOW + timedelta(seconds=second), {f"rule: {k}": n for k, n in counts.items()}
        found = watch.event_of(BatchRecord("clean", int(second), at, counts=named))
        return found.detail if found else None

    assert event(0, paid=0) is None
    assert event(1, paid=3) == "in batch 1, rows broke 'paid' (3)"
    assert event(50, paid=4) is None
    assert event(105, paid=1) is None
    assert event(170, paid=5, named=1) == "in batch 170, rows broke 'paid' (5) and 'named' (1)"


@given(st.integers(0, 10**12))
def test_rows_are_read_as_people_write_them(rows: int) -> None:
    assert {parse_rows(text) for text in (f"{rows}", f"{rows:,} rows", f"{rows:_} row")} == {rows}


@given(st.integers(0, 10_000))
def test_shares_are_read_in_percent(hundredths: int) -> None:
    assert parse_share(f"{hundredths / 100} %") == pytest.approx(hundredths / 10_000)


@given(st.sampled_from(sorted(EXPECTED)), st.text() | st.integers() | st.none())
def test_whatever_else_is_no_objective(option: str, value: object) -> None:
    assert is_objective(option, value) in (True, False)
