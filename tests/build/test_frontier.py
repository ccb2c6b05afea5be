from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import StructField, StructType, TimestampType
from tests.faults import raises
from tests.graphs import graph as graph_of, source, table

import millstream as ms
from millstream.build.event_time import Orders
from millstream.build.frontier import StreamFrontier
from millstream.checkpoint.entry import Offsets
from millstream.lake.delta import FencedTable
from millstream.lake.frontier import NOTHING_YET, Publication
from millstream.lake.home import Home
from millstream.lake.log import Facts
from millstream.model.schema import Schema
from millstream.operators.build_context import Hold
from millstream.views.why import WhyView

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.testing import Script

    Stream = Callable[..., Script]

MINUTE = 60_000_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def offset(table: str, version: int, *, starting: bool = False) -> str:
    flag = "true" if starting else "false"
    return (
        f'{{"sourceVersion":1,"reservoirId":"{table}","reservoirVersion":{version},'
        f'"index":-1,"isStartingVersion":{flag}}}'
    )


def test_the_offsets_of_a_batch_tell_the_versions_it_has_read_as_a_whole() -> None:
    ends = (offset("a", 4), "-", offset("b", 7), offset("a", 3), "5", offset("c", 2, starting=True))

    assert Offsets(0, 0, ends).versions == {"a": 2, "b": 6, "c": -1}


@dataclass(frozen=True)
class Log:
    """A checkpoint with one batch."""

    read: dict[str, int]
    watermark_ms: int = 0
    operators: tuple[str, ...] = ()

    def offsets(self, batch: int) -> Offsets:
        ends = tuple(offset(name, version + 1) for name, version in self.read.items())
        return Offsets(self.watermark_ms, 0, ends)


@dataclass(frozen=True)
class Frame:
    """An answer with an event time that Spark knows."""

    schema: StructType


TAGGED = Frame(
    StructType([StructField("at", TimestampType(), metadata={"spark.watermarkDelayMs": 1})])
)


@pytest.fixture
def inputs(home: Path) -> dict[str, FencedTable]:
    """Two landings: `a` is complete to 1 and 5 minutes, `b` to 3, at versions 2 and 3."""
    made = {}
    for name, minutes in (("a", (1, 5)), ("b", (3,))):
        path = Home.at(home).table(name)
        FencedTable.create(path, schema=Schema.parse("at TIMESTAMP").to_json())
        made[name] = FencedTable(path, name=name, epoch=1)
        made[name].take()
        for batch, minute in enumerate(minutes):
            facts = Facts("q", batch=batch, frontier=minute * MINUTE, event_time="at")
            made[name].append([], facts)
    return made


def reported(
    home: Path, inputs: dict[str, FencedTable], read: dict[str, int], **options: Any
) -> Publication:
    """Say what a table tells that has read its inputs to some versions."""
    mode, live = options.pop("mode", "append"), options.pop("live", False)
    held = options.pop("held", ())
    sources = [source(n, event_time="at", watermark="2 minutes", live=live) for n in read]
    graph = graph_of(*sources, table("t", *read, mode=mode))
    ids = {str(inputs[n].snapshot().metadata().id): version for n, version in read.items()}
    [answer] = graph.tables
    log: Any = Log(ids, **options)
    frame: Any = TAGGED
    return StreamFrontier(answer, frame, Orders(graph, Home.at(home)), log, held)(0)


def test_rows_that_pass_are_complete_as_far_as_what_was_read_of_all_inputs(
    home: Path, inputs: dict[str, FencedTable]
) -> None:
    assert reported(home, inputs, {"a": 2}) == Publication(MINUTE, "at", 2 * MINUTE)
    assert (
        reported(home, inputs, {"a": 3}, operators=("dedupeWithinWatermark",)).frontier
        == 5 * MINUTE
    )
    assert reported(home, inputs, {"a": 3, "b": 2}) == Publication(3 * MINUTE, "at", None)
    assert reported(home, inputs, {"a": 3, "b": 1}).frontier == NOTHING_YET
    assert reported(
        home, inputs, {"a": 3}, mode="update", operators=("stateStoreSave",)
    ).frontier == (5 * MINUTE)


def test_rows_that_are_held_back_are_complete_as_far_as_the_watermark(
    home: Path, inputs: dict[str, FencedTable]
) -> None:
    held = {"operators": ("stateStoreSave", "dedupeWithinWatermark")}

    assert reported(home, inputs, {"a": 3}, watermark_ms=7, **held) == Publication(7000, "at", 0)
    assert reported(home, inputs, {"a": 3}, **held).frontier == NOTHING_YET


def test_a_pattern_is_complete_to_the_watermark_less_the_time_it_may_take(
    home: Path, inputs: dict[str, FencedTable]
) -> None:
    keyed = "transformWithStateInPandasExec"
    one, two = {"operators": (keyed,)}, {"operators": (keyed, "stateStoreSave", keyed)}
    within = [Hold(timedelta(minutes=2))]

    assert reported(home, inputs, {"a": 3}, watermark_ms=600_000, held=within, **one) == (
        Publication(8 * MINUTE, "at")
    )
    both = reported(home, inputs, {"a": 3}, watermark_ms=600_000, held=within * 2, **two)
    assert both.frontier == 6 * MINUTE
    assert reported(home, inputs, {"a": 3}, held=within, **one).frontier == NOTHING_YET
    assert (
        reported(home, inputs, {"a": 3}, watermark_ms=600_000, held=within, **two) == Publication()
    )
    assert reported(home, inputs, {"a": 3}, watermark_ms=600_000, **one) == Publication()
    own = [Hold(timedelta(), keeps_times=False)]
    assert reported(home, inputs, {"a": 3}, watermark_ms=600_000, held=own, **one) == (
        Publication(10 * MINUTE)
    )


def test_of_joins_only_those_by_a_time_bound_tell_how_long_they_hold_rows(
    home: Path, inputs: dict[str, FencedTable]
) -> None:
    joined = {"operators": ("symmetricHashJoin",), "watermark_ms": 600_000}
    both = {"a": 3, "b": 2}

    told_by_ours = reported(home, inputs, both, held=[Hold(timedelta(minutes=1))], **joined)

    assert told_by_ours.frontier == 9 * MINUTE
    assert reported(home, inputs, both, **joined) == Publication()


def test_a_column_that_only_has_the_name_of_the_event_time_is_not_it(
    home: Path, inputs: dict[str, FencedTable]
) -> None:
    inputs["a"].append([], Facts("q", batch=2, frontier=6 * MINUTE, event_time="until"))

    assert reported(home, inputs, {"a": 4}) == Publication(6 * MINUTE)


def test_where_it_cannot_be_known_nothing_is_reported(
    home: Path, inputs: dict[str, FencedTable]
) -> None:
    assert reported(home, inputs, {"a": 3}, live=True) == Publication()
    assert reported(home, inputs, {"a": 3}, operators=("symmetricHashJoin",)) == Publication()


def test_a_frontier_never_goes_back_and_a_delay_is_not_forgotten() -> None:
    facts = Facts().publishing(Publication(5, "at", 90))

    assert facts.publishing(Publication(3, "at", 10)) == facts
    assert facts.publishing(Publication(9, "at", None)).delay is None
    assert facts.publishing(Publication()).frontier == 5


def test_a_version_has_the_frontier_it_had(home: Path, inputs: dict[str, FencedTable]) -> None:
    app = ms.App("shop", home=home)

    reported = [app.frontier("a", version=version) for version in (0, 1, 2, 3)]

    first = datetime(1970, 1, 1, tzinfo=UTC)
    assert reported == [None, None, first + timedelta(minutes=1), first + timedelta(minutes=5)]
    assert app.frontier("a") == reported[-1]
    with raises("UNKNOWN_VERSION"):
        app.frontier("a", version=4)
    with raises("UNKNOWN_TABLE"):
        app.frontier("c")


@pytest.mark.spark
def test_how_long_a_row_waits_for_what_may_follow_it_is_reported(
    stream: Stream, home: Path
) -> None:
    app = ms.App("shop")
    app.source(name="orders", event_time="at", watermark="1 minute")(
        lambda: ms.Memory("id BIGINT, at TIMESTAMP, kind STRING")
    )
    order = ms.pattern(key="id", within="2 hours").step("placed", "kind = 'placed'")
    app.table(name="missed")(
        lambda orders: ms.absent(orders, order.step("shipped", "kind = 'shipped'"))
    )
    app.table(name="once")(lambda orders: ms.dedup(orders, "id", within="5 minutes"))
    with stream(app, home=home) as s:
        s.send("orders", id=1, at="12:00:00", kind="placed")
        s.batch()
        s.send("orders", id=2, at="15:00:00", kind="placed")
        s.batch()
        s.batch()

    waits = [WhyView.of(Home.at(home), app.graph, name).closing for name in ("missed", "once")]

    [[wait], nothing] = waits
    assert (wait.kind, wait.length) == ("wait", timedelta(hours=2))
    assert wait.ends == NOON + timedelta(hours=5)
    assert wait.needs == NOON + timedelta(hours=5, minutes=1, milliseconds=1)
    assert nothing == ()
