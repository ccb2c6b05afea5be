from __future__ import annotations

import inspect
import subprocess
import sys

import millstream


def test_the_public_names_are_sorted_and_complete() -> None:
    public = {
        name
        for name, value in vars(millstream).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert millstream.__all__ == sorted(millstream.__all__)
    assert set(millstream.__all__) == public | {"__version__"}


def test_every_public_name_has_a_docstring() -> None:
    values = {name: getattr(millstream, name) for name in millstream.__all__}

    assert [n for n, value in values.items() if n != "__version__" and not value.__doc__] == []


def test_decorators_return_the_function_unchanged() -> None:
    app = millstream.App("shop")

    def orders() -> millstream.Memory:
        return millstream.Memory("id BIGINT")

    def paid(orders: object) -> object:
        return orders

    assert app.source()(orders) is orders
    assert app.table()(paid) is paid
    assert app.view(paid) is paid


def test_importing_millstream_does_not_import_spark() -> None:
    code = "import sys, millstream; print([m for m in ('pyspark', 'pandas') if m in sys.modules])"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout == "[]\n"
