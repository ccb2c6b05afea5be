from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st
from tests.faults import raises
from tests.graphs import graph, source, table, view

from millstream.model.dataset import EventTime
from millstream.plan import plan
from millstream.plan.queries import event_time_of

SHOP = graph(
    source("orders", event_time="at", watermark="10 minutes"),
    source("ticks", live=True),
    view("paid", "orders"),
    table("by_day", "paid", mode="update", key=("id",)),
    table("best", "by_day", mode="complete"),
    table("ticked", "ticks"),
)


def test_a_plan_has_one_query_per_landing_and_table_and_none_per_view_or_live_source() -> None:
    assert [(query.name, query.kind, query.after) for query in plan(SHOP)] == [
        ("orders", "landing", ()),
        ("ticked", "stream", ("ticks",)),
        ("by_day", "stream", ("orders",)),
        ("best", "recompute", ("by_day",)),
    ]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("by_day", {"by_day"}),
        ("+by_day", {"orders", "by_day"}),
        ("by_day+", {"by_day", "best"}),
        ("+best", {"orders", "by_day", "best"}),
        ("1+best", {"by_day", "best"}),
        ("3+best", {"orders", "by_day", "best"}),
        ("orders+1", {"orders"}),
        ("orders+2 ticked", {"orders", "by_day", "ticked"}),
    ],
)
def test_selection_follows_dbt(selector: str, names: set[str]) -> None:
    assert {query.name for query in plan(SHOP, SHOP.select([selector]))} == names
    assert SHOP.select(selector) == SHOP.select([selector])


def test_what_is_excluded_is_left_out_at_last() -> None:
    assert SHOP.select(None, ["paid+"]) == {"orders", "ticks", "ticked"}
    assert SHOP.select(["+best"], ["1+by_day"]) == {"orders", "best"}
    with raises("NOTHING_SELECTED") as caught:
        SHOP.select(["best"], ["by_day+", "ticks"])
    assert str(caught.value).splitlines() == [
        "[NOTHING_SELECTED] --exclude 'by_day+ ticks' leaves no dataset",
        "  fix: exclude fewer names",
    ]


def test_selecting_an_unknown_name_offers_the_nearest() -> None:
    with raises("UNKNOWN_SELECTION") as caught:
        SHOP.select(["+by_dya"])

    assert str(caught.value) == (
        "[UNKNOWN_SELECTION] --select '+by_dya' names no dataset\n"
        "  fix: did you mean 'by_day'? write name, +name, name+ or 2+name; "
        "names are best, by_day, orders, paid, ticked, ticks"
    )


def test_event_time_is_inherited_through_views_and_tables() -> None:
    assert event_time_of(SHOP, "best") == EventTime("at", timedelta(minutes=10))
    assert event_time_of(SHOP, "ticked") is None


def test_rows_of_several_inputs_have_no_event_time_in_common() -> None:
    app = graph(
        source("fast", event_time="at", watermark="10 minutes"),
        source("slow", event_time="at", watermark="10 minutes"),
        table("both", "fast", "slow"),
        table("after", "both"),
    )

    assert event_time_of(app, "both") is None
    assert event_time_of(app, "after") is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_every_query_comes_after_those_it_reads_from(edges: list[tuple[int, int]]) -> None:
    reads: dict[int, set[str]] = {n: set() for n in range(10)}
    for reader, read in edges:
        if read < reader:
            reads[reader].add(f"t{read}")
    tables = [table(f"t{n}", "s", *sorted(reads[n])) for n in reversed(range(10))]

    order = [query.name for query in plan(graph(*tables, source("s")))]

    assert sorted(order) == sorted(["s", *(f"t{n}" for n in range(10))])
    for n in range(10):
        assert all(order.index(name) < order.index(f"t{n}") for name in ("s", *reads[n]))
