from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.graphs import graph, serve, source, table, view

import millstream as ms
from millstream.check import faults
from millstream.model.dataset import Expectations
from millstream.model.trigger import Trigger
from millstream.views.drawing import to_text
from millstream.views.graph import GraphView
from millstream.views.report import CheckView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.model.dataset import Serve
    from millstream.model.graph import Graph

XML = ms.Kafka("latest", format="xml")
KEYED = ms.Kafka("latest", key="id")
LIVE = source("s", live=True, connector=ms.Kafka("s", schema="id BIGINT"))
RULED = source(
    "s", live=True, connector=ms.Kafka("s", schema="id BIGINT"), expect=Expectations({"r": "id"})
)
TICKS = source("s", live=True, connector=ms.Rate())


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        (graph(source("s", live=True), serve("out", "s", to=(KEYED,), mode="update")), []),
        (graph(source("s"), view("v", "s"), serve("out", "v", trigger="5 seconds")), []),
        (graph(source("s"), table("t", "s"), serve("out", "t")), []),
        (graph(source("s"), serve("out", "s", mode="upsert")), ["OPTION_REFUSED"]),
        (graph(source("s"), serve("out", "s", trigger="soon")), ["DURATION_REFUSED"]),
        (graph(source("s"), serve("out", "s", to=(XML,))), ["FORMAT_REFUSED"]),
        (graph(source("s"), serve("out")), ["NO_INPUT"]),
        (graph(source("s"), serve("out", "s"), view("v", "out")), ["SERVED_INPUT"]),
    ],
)
def test_served_answers_are_checked_against_the_rules_of_tables(
    app: Graph, expected: list[str]
) -> None:
    assert [error.code for error in faults(app)] == expected


@pytest.mark.parametrize(
    ("trigger", "reported"),
    [
        (None, "update · exactly once"),
        ("realtime", "update · realtime · at least once, keyed by id"),
    ],
)
def test_a_served_answer_is_drawn_with_its_sink_and_what_that_guarantees(
    trigger: str | None, reported: str
) -> None:
    app = graph(LIVE, serve("out", "s", to=(KEYED,), mode="update", trigger=trigger))

    assert to_text(GraphView.of(app)) == (
        "shop: 1 source, 1 serve\n\n"
        "  s       source · kafka · live\n"
        f"  └─ out  serve · kafka · {reported}"
    )
    assert CheckView.of(app, ()).guarantees == {"out": reported.rsplit(" · ", maxsplit=1)[-1]}


SOLD = table("t", "s", mode="update", key=("id",))
FILE = ms.FileSink("out")
STORES = (KEYED, ms.SQLite("a.db", key="id"), ms.DeltaPath("t", key="id"))


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        (serve("out", "s", to=STORES, mode="update"), []),
        (serve("out", "s", to=(KEYED, FILE)), []),
        (serve("out", "s", to=(FILE,), mode="update"), ["STORE_MODE"]),
        (serve("out", "s", to=(KEYED,), mode="complete"), ["STORE_MODE"]),
        (serve("out", "s", to=(ms.Kafka("t"),), mode="update"), ["STORE_MODE"]),
        (
            serve("out", "s", to=(ms.Kafka("t", format="text", envelope="debezium"),)),
            ["STORE_MODE"],
        ),
        (serve("out", "s", to=(ms.FileSink("out", "xml"),)), ["FORMAT_REFUSED"]),  # type: ignore[arg-type]
        (serve("out", "s", to=(KEYED, ms.Console())), []),
        (serve("out", "s", to=(ms.Console(), ms.Console())), ["SEVERAL_SINKS"]),
        (serve("out", "t", to=STORES, mode="update"), []),
        (serve("out", "t", to=STORES[1:], mode="complete"), []),
        (serve("out", "t", to=STORES), ["SERVED_CHANGES"]),
        (serve("out", "t", to=(ms.Console(),), mode="complete"), ["SERVED_CHANGES"]),
        (
            serve("out", "t", to=(KEYED, ms.SQLite("a.db", key="n")), mode="update"),
            ["SERVED_CHANGES"],
        ),
    ],
)
def test_what_each_sink_can_do_is_known_without_asking_it(
    served: Serve, expected: list[str]
) -> None:
    assert [error.code for error in faults(graph(source("s"), SOLD, served))] == expected


def test_without_batches_spark_writes_and_cannot_do_all_of_it() -> None:
    sink = ms.Kafka("t", key="id", delete_when="id = 1", envelope="debezium")

    found = faults(graph(LIVE, serve("out", "s", to=(sink,), trigger="realtime")))

    assert [error.code for error in found] == ["STORE_MODE", "STORE_MODE"]


def test_a_function_is_served_under_its_name_and_stays_as_it_is() -> None:
    app = ms.App("shop")

    @app.serve(to=[ms.Console()], mode="append", trigger="1 minute")
    def out(orders: DataFrame) -> DataFrame:
        return orders

    [declared] = app.graph.serves
    assert (declared.name, declared.reads) == ("out", ("orders",))
    assert (declared.to, declared.mode, declared.options.trigger) == (
        (ms.Console(),),
        "append",
        "1 minute",
    )
    assert out is declared.build


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        (graph(LIVE, serve("out", "s", trigger="realtime")), []),
        (graph(LIVE, serve("out", "s", trigger="realtime 10 seconds", mode="update")), []),
        (graph(LIVE, view("v", "s"), serve("out", "v", trigger="continuous 1 s")), []),
        (graph(TICKS, serve("out", "s", trigger="continuous")), []),
        (graph(RULED, serve("out", "s", trigger="realtime")), []),
        (graph(RULED, serve("out", "s", trigger="continuous")), ["TRIGGER_INPUT"]),
        (graph(TICKS, serve("out", "s", trigger="realtime")), ["TRIGGER_INPUT"]),
        (
            graph(LIVE, table("t", "s"), view("v", "t"), serve("out", "v", trigger="realtime")),
            ["TRIGGER_INPUT"],
        ),
        (graph(LIVE, serve("out", "s", trigger="realtime 500 ms")), ["DURATION_REFUSED"]),
        (graph(LIVE, serve("out", "s", trigger="realtime", mode="complete")), ["TRIGGER_MODE"]),
        (graph(LIVE, serve("out", "s"), trigger="realtime"), []),
        (graph(LIVE, serve("out", "s"), trigger="soon"), ["DURATION_REFUSED"]),
        (graph(LIVE, table("t", "s"), trigger="realtime"), ["TRIGGER_TARGET"]),
        (graph(LIVE, table("t", "s", trigger="default"), trigger="realtime"), []),
        (graph(LIVE, table("t", "s")).with_trigger("realtime"), ["TRIGGER_TARGET"]),
        (
            graph(source("s"), serve("out", "s", trigger="5 seconds")).with_trigger("continuous"),
            ["TRIGGER_TARGET", "TRIGGER_INPUT"],
        ),
    ],
)
def test_what_needs_batches_is_refused_without_them(app: Graph, expected: list[str]) -> None:
    assert [error.code for error in faults(app)] == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("realtime", "realtime 5 seconds"),
        ("realtime 2 minutes", "realtime 2 minutes"),
        ("continuous", "continuous 1 second"),
        ("default", "default"),
        ("1 minute", "60 s"),
    ],
)
def test_triggers_are_read_and_shown(text: str, shown: str) -> None:
    trigger = Trigger.parse(text)

    assert str(trigger) == shown
    assert trigger.is_row_wise == (text[0] in "rc")
