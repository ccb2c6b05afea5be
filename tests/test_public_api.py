from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import millstream


def test_the_public_names_are_sorted_and_type_checkers_know_all_of_them() -> None:
    tree = ast.parse(Path(millstream.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    known = {alias.asname for node in imports for alias in node.names if alias.asname}

    assert millstream.__all__ == sorted(millstream.__all__, key=lambda n: (n[0] != "_", n))
    assert set(millstream.__all__) == known
    assert dir(millstream) == sorted(millstream.__all__)


def test_a_name_that_does_not_exist_is_refused_as_by_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'millstream' has no attribute 'Kafak'"):
        millstream.Kafak  # type: ignore[attr-defined]  # noqa: B018


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


def test_using_millstream_does_not_import_spark() -> None:
    heavy = "[m for m in ('pyspark', 'pandas') if m in sys.modules]"
    code = f"import sys; from millstream import *; print({heavy})"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout == "[]\n"
