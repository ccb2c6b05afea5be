from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle
from tests.faults import raises

from millstream.loading import find_home, load

if TYPE_CHECKING:
    from millstream.errors import MillstreamError

SHOP = 'import millstream as ms\napp = ms.App("shop")\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MILLSTREAM_HOME", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return tmp_path


def write(text: str, name: str = "app.py") -> str:
    Path(name).write_text(text)
    return name


def message(error: pytest.ExceptionInfo[MillstreamError]) -> list[str]:
    return str(error.value).splitlines()


def test_the_app_of_a_file_is_found_whatever_its_variable_is_called() -> None:
    write(SHOP.replace("app =", "my_shop = also = "))

    app = load("app.py")

    assert app.name == "shop"


def test_a_main_guard_is_not_entered() -> None:
    write(SHOP + 'if __name__ == "__main__":\n    raise SystemExit(9)\n')

    app = load("app.py")

    assert app.name == "shop"


def test_modules_beside_the_app_can_be_imported_by_it_and_by_workers() -> None:
    write("RATE = 3\n", "beside_the_app.py")
    write(SHOP + "from beside_the_app import RATE\nassert RATE == 3\n")

    load("app.py")

    assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == str(Path.cwd())


def test_functions_of_an_app_file_are_pickled_whole() -> None:
    write(SHOP + "@app.view\ndef double(orders): return orders\n")

    [view] = load("app.py").graph.views
    pickled = cloudpickle.dumps(view.build)  # type: ignore[no-untyped-call]

    assert b"_make_function" in pickled


def test_a_missing_file_is_refused_with_the_nearest_one() -> None:
    write(SHOP)

    with raises("APP_FILE_MISSING") as error:
        load("app")

    assert message(error) == [
        "[APP_FILE_MISSING] app file 'app' does not exist",
        "  fix: did you mean 'app.py'? name the app file; Python files here: app.py",
    ]


def test_a_missing_file_in_a_missing_folder_is_refused() -> None:
    with raises("APP_FILE_MISSING") as error:
        load("shop/app.py")

    assert message(error) == [
        "[APP_FILE_MISSING] app file 'shop/app.py' does not exist",
        "  fix: name the app file; Python files here: none",
    ]


def test_a_file_that_raises_is_reported_at_the_users_line() -> None:
    write('import json\n\njson.loads("{")\n')

    with raises("APP_FILE") as error:
        load("app.py")

    assert message(error) == [
        "[APP_FILE] app file 'app.py' raises JSONDecodeError: Expecting property name enclosed in "
        "double quotes: line 1 column 2 (char 1)",
        "  at:  app.py:3",
        "  fix: correct the file; `python app.py` shows the whole trace",
    ]


def test_a_file_that_needs_spark_while_it_is_read_is_reported_with_where_to_put_the_line() -> None:
    write('from pyspark.sql import functions as F\n@F.udf("string")\ndef f(x): return x\n')

    # A process of its own: in this one, Spark may run already.
    load_it = "from millstream.loading import load; load('app.py')"
    done = subprocess.run([sys.executable, "-c", load_it], capture_output=True, check=False)

    assert done.stderr.decode().splitlines()[-2:] == [
        "  at:  app.py:2",
        "  fix: Spark starts after the file is read: move the line into the function of a dataset; "
        "a UDF may stay if its type is an object such as StringType()",
    ]


def test_a_file_that_leaves_is_reported() -> None:
    write("import sys\nsys.exit(4)\n")

    with raises("APP_FILE") as error:
        load("app.py")

    assert message(error)[:2] == [
        "[APP_FILE] app file 'app.py' raises SystemExit: 4",
        "  at:  app.py:2",
    ]


def test_a_file_that_is_not_python_is_reported_at_the_line() -> None:
    write("import millstream as ms\napp = = 3\n")

    with raises("APP_FILE") as error:
        load("app.py")

    assert message(error)[:2] == [
        "[APP_FILE] app file 'app.py' raises SyntaxError: invalid syntax",
        "  at:  app.py:2",
    ]


def test_a_file_without_an_app_is_refused() -> None:
    write("x = 1\n")

    with raises("NO_APP") as error:
        load("app.py")

    assert message(error) == [
        "[NO_APP] app file 'app.py' holds no App",
        "  at:  app.py:1",
        '  fix: declare one at the top level: app = ms.App("name")',
    ]


def test_a_file_with_two_apps_is_refused_unless_one_is_named() -> None:
    write(SHOP + 'other = ms.App("other")\n')

    with raises("TWO_APPS") as error:
        load("app.py")

    assert message(error) == [
        "[TWO_APPS] app file 'app.py' holds 2 Apps: app, other",
        "  at:  app.py:1",
        "  fix: keep one App per file, or name the one to use: app.py:app",
    ]
    assert load("app.py:other").name == "other"


def test_an_app_named_wrongly_is_refused_with_the_nearest_one() -> None:
    write(SHOP)

    with raises("NO_APP") as error:
        load("app.py:ap")

    assert message(error) == [
        "[NO_APP] app file 'app.py' holds no App 'ap'",
        "  at:  app.py:1",
        "  fix: did you mean 'app'? Apps are app",
    ]


def test_the_home_of_a_plain_app_is_found_without_running_the_file() -> None:
    write(SHOP + "raise ValueError\n")

    assert find_home("app.py").path == Path.cwd() / ".millstream/shop"


def test_the_home_in_the_code_is_found_without_running_the_file() -> None:
    write('import millstream as ms\napp = ms.App("shop", home="/data/shop")\nraise ValueError\n')

    assert find_home(None).path == Path("/data/shop")


def test_the_home_of_an_app_with_a_computed_name_is_found_by_running_the_file() -> None:
    write('import millstream as ms\nname = "sh" + "op"\napp = ms.App(name)\n')

    assert find_home("app.py").path == Path.cwd() / ".millstream/shop"


def test_a_given_home_needs_no_app_file() -> None:
    assert find_home(None, "/data/shop").path == Path("/data/shop")


def test_a_folder_is_the_app_of_its_app_file_even_if_it_holds_sql() -> None:
    Path("other").mkdir()
    write(SHOP, "other/app.py")
    write("SELECT 1", "other/one.sql")

    app = load("other")

    assert (app.name, app.graph.declared) == ("shop", ())
    assert find_home("other/").path == Path.cwd() / ".millstream/shop"


def test_a_folder_of_sql_is_an_app_with_a_home_of_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("shop").mkdir()
    write("-- source: rate\n", "shop/ticks.sql")

    assert [load(path).name for path in ("shop", "shop/", "./shop/.")] == ["shop"] * 3
    assert find_home("shop").path == Path.cwd() / ".millstream/shop"
    monkeypatch.chdir(folder / "shop")
    assert [load(path).name for path in ("app.py", ".")] == ["shop"] * 2
    assert find_home(None).path == Path.cwd() / ".millstream/shop"


def test_a_folder_that_holds_no_app_is_refused() -> None:
    Path("shop").mkdir()
    write(SHOP, "shop/ap.py")

    with raises("APP_FILE_MISSING") as error:
        load("shop")

    assert message(error) == [
        "[APP_FILE_MISSING] app file 'shop/app.py' does not exist",
        "  fix: did you mean 'shop/ap.py'? name the app file; Python files here: shop/ap.py",
    ]


def test_one_file_of_sql_is_refused_with_its_folder() -> None:
    write("SELECT 1", "one.sql")

    with raises("SQL_FILE_ALONE") as error:
        load("one.sql")

    assert message(error) == [
        "[SQL_FILE_ALONE] 'one.sql' is one dataset, not an app",
        "  fix: name the folder whose files are the app: .",
    ]
