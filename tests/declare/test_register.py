from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import raises
from tests.graphs import source, table

from millstream.declare.notebook import Execution, execution, place_of
from millstream.declare.register import Declaration, Register
from millstream.errors import Location

if TYPE_CHECKING:
    import millstream as ms


class Notebook:
    """As much of IPython as the declarations look at."""

    def __init__(self) -> None:
        self.execution_count = 0
        self.parent_header: dict[str, Any] = {}
        self.compile = SimpleNamespace(format_code_name=self._label)
        self._numbers: dict[str, int] = {}

    def run(self, text: str, names: dict[str, Any], cell: str | None = None) -> None:
        """Run a cell as a kernel does: code is known by its text, not by its cell."""
        self.execution_count += 1
        self.parent_header = {"metadata": {"cellId": cell}} if cell else {}
        file = f"/tmp/ipykernel_1/{abs(hash(text))}.py"
        self._numbers[file] = self.execution_count
        exec(compile(text, file, "exec"), names)

    def _label(self, file: str) -> tuple[str, str] | None:
        number = self._numbers.get(file)
        return ("Cell", f"In[{number}]") if number else None


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    shell = Notebook()
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    return shell


START = """
import millstream as ms
app = ms.App("shop")

@app.source()
def orders():
    return ms.Memory("id BIGINT, price DOUBLE")
"""
PAID = """
@app.table()
def paid(orders):
    return orders
"""


def started(notebook: Notebook) -> dict[str, Any]:
    names: dict[str, Any] = {}
    notebook.run(START, names)
    return names


def test_a_cell_that_is_run_again_replaces_its_datasets_where_they_stand(
    notebook: Notebook,
) -> None:
    names = started(notebook)
    notebook.run(PAID, names)
    notebook.run('app.sql("daily", "SELECT id FROM paid")', names)

    notebook.run(PAID.replace("app.table()", "app.table(partition_by='id')"), names)

    app: ms.App = names["app"]
    assert app.faults == ()
    assert [d.name for d in app.graph.declared] == ["orders", "paid", "daily"]
    assert app.graph.tables[0].partition_by == ("id",)
    assert str(app.graph.tables[0].at) == "cell 4, line 2"


def test_what_was_wrong_is_forgotten_when_the_cell_is_mended(notebook: Notebook) -> None:
    names = started(notebook)
    notebook.run(PAID.replace("app.table()", "app.table(mod='append')"), names)
    notebook.run('app.sql("daily", "SELECT id FROM paid")', names)
    app: ms.App = names["app"]

    [fault] = app.faults
    assert str(fault).splitlines()[:2] == [
        "[UNKNOWN_OPTION] 'paid' has the option 'mod', which does not exist",
        "  at:  cell 2, line 2",
    ]

    notebook.run(PAID, names)

    assert app.faults == ()


def test_one_cell_that_declares_a_name_twice_is_wrong(notebook: Notebook) -> None:
    names = started(notebook)

    notebook.run(PAID + PAID, names)

    [fault] = names["app"].faults
    assert fault.code == "DUPLICATE_NAME"
    assert fault.what == "dataset 'paid' is declared twice, first at cell 2, line 2"


def test_a_dataset_that_is_renamed_in_its_cell_leaves_nothing_behind(notebook: Notebook) -> None:
    names = started(notebook)
    notebook.run(PAID, names, cell="b")

    notebook.run(PAID.replace("paid", "settled"), names, cell="b")

    assert [d.name for d in names["app"].graph.declared] == ["orders", "settled"]


def test_a_dataset_of_a_file_can_be_tried_otherwise_in_a_cell() -> None:
    register = Register()
    register.enter(Declaration("orders", source("orders")))
    register.enter(Declaration("paid", table("paid", "orders")))

    register.enter(Declaration("paid", table("paid", "orders", mode="complete"), (), Execution(7)))

    assert [dataset.name for dataset in register.datasets] == ["orders", "paid"]


def test_in_a_file_a_name_that_comes_twice_stays_a_fault() -> None:
    assert execution() is None
    assert place_of("/srv/app.py") == "/srv/app.py"
    register = Register()
    register.enter(Declaration("orders", source("orders")))

    register.enter(Declaration("orders", source("orders")))

    assert len(register.datasets) == 2


def test_faults_are_reported_in_the_order_of_the_cells(notebook: Notebook) -> None:
    names = started(notebook)
    for number in range(9):
        notebook.run(f"app.sql('t{number}', 'SELECT id FROM nowhere')", names)

    places = [fault.at for fault in names["app"].faults]

    assert places == [Location(f"cell {n}", 1) for n in range(2, 11)]


def test_an_error_is_all_that_a_notebook_shows(notebook: Notebook) -> None:
    names = started(notebook)

    with raises("UNKNOWN_DATASET") as caught:
        names["app"].preview("ordes")

    assert caught.value._render_traceback_() == [
        "[UNKNOWN_DATASET] there is no dataset 'ordes'",
        "  fix: did you mean 'orders'? names are orders",
    ]
