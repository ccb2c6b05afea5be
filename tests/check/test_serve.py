from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.graphs import graph, serve, source, table, view

import millstream as ms
from millstream.check import faults
from millstream.views import CheckView
from millstream.views.drawing import to_text
from millstream.views.graph import GraphView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.model.graph import Graph

KEYED = ms.Kafka("latest", key="id")


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        (graph(source("s", live=True), serve("out", "s", to=(KEYED,), mode="update")), []),
        (graph(source("s"), view("v", "s"), serve("out", "v", trigger="5 seconds")), []),
        (graph(source("s"), table("t", "s"), serve("out", "t")), []),
        (graph(source("s"), serve("out", "s", mode="upsert")), ["OPTION_REFUSED"]),
        (graph(source("s"), serve("out", "s", trigger="soon")), ["DURATION_REFUSED"]),
        (graph(source("s"), serve("out")), ["NO_INPUT"]),
        (graph(source("s"), serve("out", "s"), view("v", "out")), ["SERVED_INPUT"]),
    ],
)
def test_served_answers_are_held_to_the_rules_of_tables(app: Graph, expected: list[str]) -> None:
    assert [error.code for error in faults(app)] == expected


def test_a_served_answer_is_drawn_with_its_sink_and_what_that_guarantees() -> None:
    app = graph(source("s", live=True), serve("out", "s", to=(KEYED,), mode="update"))

    assert to_text(GraphView.of(app)) == (
        "shop: 1 source, 1 serve\n\n"
        "  s       source · memory · live\n"
        "  └─ out  serve · kafka · update · at least once, keyed by id"
    )
    assert CheckView.of(app, ()).guarantees == {"out": "at least once, keyed by id"}


def test_a_function_is_served_under_its_name_and_stays_as_it_is() -> None:
    app = ms.App("shop")

    @app.serve(to=[ms.Console()], mode="append", trigger="1 minute")
    def out(orders: DataFrame) -> DataFrame:
        return orders

    [declared] = app.graph.serves
    assert (declared.name, declared.reads) == ("out", ("orders",))
    assert (declared.to, declared.mode, declared.trigger) == ((ms.Console(),), "append", "1 minute")
    assert out is declared.build
