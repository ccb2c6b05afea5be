from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from river.linear_model import LinearRegression
from tests.graphs import graph, source, table, view

from millstream.check import RULES, faults, faults_among
from millstream.declare.dataset import model_of
from millstream.systems.files.source import Files
from millstream.systems.generator.source import Generator
from millstream.systems.memory.source import Memory
from millstream.systems.rate.source import Rate
from millstream.systems.table.source import Table as FollowedTable

if TYPE_CHECKING:
    from millstream.model.dataset import Model, Source
    from millstream.model.graph import Graph


FOLLOWING = FollowedTable("/nowhere", "orders")


def timed(name: str, **options: Any) -> Source:
    return source(name, event_time="at", watermark="1 minute", **options)


def computed(column: str) -> Source:
    """A source whose event time is computed."""
    return source(
        "s", event_time=column, event_time_from="timestamp_millis(id)", watermark="1 minute"
    )


def model(**options: Any) -> Model:
    def m(s: object) -> object:
        return s

    return model_of(m, {"learner": LinearRegression(), **options})  # type: ignore[typeddict-item]


def codes(app: Graph) -> list[str]:
    return [error.code for error in faults(app)]


def test_a_sound_graph_has_no_faults() -> None:
    app = graph(
        source("orders", event_time="at", watermark="10 minutes"),
        view("paid", "orders"),
        table("by_day", "paid", mode="update", key=("id",)),
        table("best", "by_day", mode="complete"),
    )

    assert faults(app) == ()


def test_reading_an_undeclared_name_is_reported_with_the_nearest_match() -> None:
    [error] = faults(graph(source("orders"), table("paid", "ordrs")))

    assert str(error) == (
        "[UNKNOWN_INPUT] 'paid' reads 'ordrs', which is not declared\n"
        "  at:  app.py:7\n"
        "  fix: did you mean 'orders'? declared names are orders, paid"
    )


def test_datasets_that_read_each_other_are_reported_as_a_circle() -> None:
    [error] = faults(graph(source("s"), table("a", "b", "s"), table("b", "a")))

    assert str(error) == (
        "[CYCLE] datasets read each other in a circle: 'a' reads 'b' reads 'a'\n"
        "  at:  app.py:7\n"
        "  fix: break the circle: one of them must not read the next"
    )


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        (graph(), ["EMPTY_APP"]),
        (graph(source("Orders")), ["NAME_REFUSED"]),
        (graph(source("a__b")), ["NAME_REFUSED"]),
        (graph(source("../x")), ["NAME_REFUSED"]),
        (graph(source("s"), source("s")), ["DUPLICATE_NAME"]),
        (graph(source("s"), table("t")), ["NO_INPUT"]),
        (graph(source("s"), table("t", "s", mode="upsert")), ["OPTION_REFUSED"]),
        (graph(source("s", late="drop")), ["OPTION_REFUSED"]),
        (graph(timed("s", partition_by="day")), []),
        (graph(timed("s", partition_by="hour")), ["OPTION_REFUSED"]),
        (graph(timed("s", partition_by="day", live=True)), ["OPTION_UNUSED"]),
        (graph(source("s", partition_by="day")), ["OPTION_UNUSED"]),
        (graph(source("s", future="soon")), ["DURATION_REFUSED"]),
        (graph(source("s"), table("t", "s", trigger="5 parsecs")), ["DURATION_REFUSED"]),
        (graph(source("s", event_time="at")), ["WATERMARK_MISSING"]),
        (graph(source("s", watermark="1 day")), ["WATERMARK_MISSING"]),
        (graph(source("s", idle="1 day")), ["IDLE_REFUSED"]),
        (graph(timed("s", idle="1 day")), []),
        (graph(timed("s", idle="0 s")), ["IDLE_REFUSED"]),
        (graph(timed("s", idle="soon")), ["DURATION_REFUSED"]),
        (graph(timed("s", idle="1 day", live=True)), ["IDLE_REFUSED"]),
        (graph(timed("s", idle="1 day", connector=FOLLOWING)), ["IDLE_REFUSED", "SOURCE_HOME"]),
        (graph(source("s", event_time="ta", watermark="1 day")), ["EVENT_TIME_COLUMN"]),
        (graph(source("s", event_time="id", watermark="1 day")), ["EVENT_TIME_COLUMN"]),
        (graph(computed("AT")), ["EVENT_TIME_EXPRESSION"]),
        (graph(computed("_at")), ["EVENT_TIME_EXPRESSION"]),
        (graph(computed("seen")), []),
        (graph(source("s", connector=Memory("id BIGNIT"))), ["SCHEMA"]),
        (graph(source("s", connector=Files("/nowhere/at/all"))), ["PATH_MISSING"]),
        (graph(source("s", connector=Files(".", format="jsonl"))), ["FORMAT_REFUSED"]),
        (graph(source("s", connector=Generator("id INT", late=2))), ["SHARE_REFUSED"]),
        (graph(source("s", connector=Rate(head_start=timedelta(-1)))), ["SHARE_REFUSED"]),
        (graph(source("s"), table("t", "s", mode="update")), ["KEY_MISSING"]),
        (graph(source("s"), table("t", "s", key=("id",))), ["KEY_UNUSED"]),
        (graph(source("s"), model(every="2 minutes", window=1)), []),
        *(
            (graph(source("s"), model(every=every)), ["DURATION_REFUSED"])
            for every in ("500 ms", "0 seconds", "1500 ms", "often")
        ),
        *(
            (graph(source("s"), model(window=window)), ["OPERATOR_OPTION"])
            for window in (0, -1, 2.5, True)
        ),
        (
            graph(source("s"), table("t", "s", mode="complete"), view("v", "t"), table("u", "v")),
            ["CHANGING_INPUT"],
        ),
    ],
)
def test_each_fault_is_found_by_its_rule(app: Graph, expected: list[str]) -> None:
    assert codes(app) == expected


def test_all_faults_are_reported_at_once() -> None:
    app = graph(source("Bad", future="x"), table("t", "nothing", mode="update"))

    assert codes(app) == ["NAME_REFUSED", "UNKNOWN_INPUT", "DURATION_REFUSED", "KEY_MISSING"]


def test_every_rule_bears_a_graph_with_a_circle_and_unknown_names() -> None:
    app = graph(table("a", "b"), table("b", "a", "zzz"), view("v", "nowhere"))

    assert [list(rule(app)) is not None for rule in RULES] == [True] * len(RULES)


def test_a_part_of_a_graph_has_its_own_faults_and_remedies_of_the_whole() -> None:
    whole = graph(source("orders"), table("paid", "ordrs"), table("a", "b"), table("b", "a"))

    assert [error.code for error in faults_among({"a", "b"}, whole)] == ["EMPTY_APP", "CYCLE"]
    [_, error] = faults_among({"paid", "ordrs"}, whole)
    assert error.fix.startswith("did you mean 'orders'? ")
