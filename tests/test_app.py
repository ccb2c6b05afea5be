from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import millstream as ms
from millstream.model.reaction import REACTION_KINDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def orders() -> ms.Memory:
    return ms.Memory("id BIGINT")


def paid(orders: DataFrame) -> DataFrame:
    return orders


def write(rows: object, batch: ms.Batch) -> None:
    return


def shop() -> ms.App:
    app = ms.App("shop")
    app.source(orders)
    return app


def test_a_function_that_names_no_event_reacts_to_all() -> None:
    bare, called, chosen = ms.App("shop"), ms.App("shop"), ms.App("shop")

    def page(event: object) -> None: ...

    assert bare.on(page) is called.on()(page) is chosen.on("stale")(page) is page
    kinds = [[r.kinds for r in app.graph.reactions] for app in (bare, called, chosen)]
    assert kinds == [[REACTION_KINDS], [REACTION_KINDS], [("stale",)]]


def test_a_decorator_that_needs_nothing_works_with_and_without_parentheses() -> None:
    bare, called = ms.App("shop"), ms.App("shop")

    assert bare.source(orders) is orders
    assert bare.table(paid) is paid
    assert called.source()(orders) is orders
    assert called.table()(paid) is paid

    assert bare.faults == called.faults == ()
    assert bare.graph == called.graph


def test_a_view_works_with_and_without_parentheses() -> None:
    bare, called, named = shop(), shop(), shop()

    assert bare.view(paid) is paid
    assert called.view()(paid) is paid
    assert named.view(name="settled")(paid) is paid

    assert bare.graph == called.graph
    assert [d.name for d in named.graph.declared] == ["orders", "settled"]


def test_type_checkers_know_that_a_decorator_returns_the_function_unchanged() -> None:
    app, sink = shop(), ms.sink(write)

    # mypy refuses an ignore that hides nothing, so these lines hold only if the type is kept.
    app.view(paid)(1)  # type: ignore[arg-type]
    app.table(paid)(1)  # type: ignore[arg-type]
    app.table(mode="append")(paid)(1)  # type: ignore[arg-type]
    app.serve(to=sink)(paid)(1)  # type: ignore[arg-type]


def test_a_bare_serve_is_refused_because_it_goes_nowhere() -> None:
    app = shop()

    app.serve(paid)  # type: ignore[arg-type, call-arg]

    [fault] = app.faults
    assert fault.code == "NOT_A_SINK"
    assert str(fault).startswith("[NOT_A_SINK] serve 'paid' has to=None\n  at:  ")
    assert "test_app.py:" in str(fault.at)
    assert fault.fix.startswith("serve it to ms.SQLite, ")


def test_a_bare_alert_is_refused_because_nobody_receives_it() -> None:
    app = shop()

    app.alert(paid)  # type: ignore[arg-type, call-arg]

    [fault] = app.faults
    assert fault.code == "NOT_A_DESTINATION"
    assert str(fault).startswith("[NOT_A_DESTINATION] alert 'paid' has to=None\n  at:  ")
    assert "test_app.py:" in str(fault.at)
    assert "ms.Webhook" in fault.fix


def test_an_option_that_a_view_does_not_have_is_reported() -> None:
    app = shop()

    app.view(mode="append")(paid)  # type: ignore[call-overload]

    [fault] = app.faults
    assert fault.code == "UNKNOWN_OPTION"


@pytest.mark.parametrize("kind", ["source", "view", "table", "serve", "alert"])
def test_an_option_without_its_name_is_refused(kind: str) -> None:
    with pytest.raises(TypeError, match="options have names; got 'paid'"):
        getattr(shop(), kind)("paid")


def test_a_sink_can_be_declared_by_its_bare_name() -> None:
    assert ms.sink(write).name == "write"
