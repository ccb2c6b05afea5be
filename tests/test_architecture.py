"""docs/architecture.md says of the tree, the layers and a row's journey what the code says."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/millstream"
TEXT = (ROOT / "docs/architecture.md").read_text()
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
LAYERS, NEEDS_NO_SPARK = CONTRACTS["contracts"]
NAMES = sorted({*re.findall(r"`([a-z_]+(?:\.\w+)+)`", TEXT)})
FOLDERS = sorted({*re.findall(r"`([\w/]+/)`", TEXT)})


def section(title: str) -> list[str]:
    """Give the lines of the block under a heading."""
    found = re.search(rf"^## {title}\n.*?^```text\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def rooms() -> set[str]:
    """Name what stands in the package: folders and modules."""
    folders = {f"{file.parent.name}/" for file in SOURCE.glob("*/__init__.py")}
    return folders | {file.name for file in SOURCE.glob("*.py")}


def room_of(name: str) -> str | None:
    """Name the room of a module as a layer has it; None if it has not opened yet."""
    room = name.strip("()").removeprefix("millstream.")
    return room if {f"{room}/", f"{room}.py"} & rooms() else None


def test_the_tree_names_every_room_and_no_other() -> None:
    named = [line.split()[0] for line in section("The tree") if line.startswith("  ")]

    assert sorted(named) == sorted(rooms())


def test_the_systems_are_those_that_have_a_package() -> None:
    found = {f"systems/{file.parent.name}/" for file in SOURCE.glob("systems/*/__init__.py")}

    assert {folder for folder in FOLDERS if folder.startswith("systems/")} - {"systems/"} == found


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_exists(folder: str) -> None:
    assert (SOURCE / folder).is_dir() or (ROOT / folder).is_dir()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_one_of_the_code(name: str) -> None:
    parts = name.split(".")
    modules = [n for n in range(len(parts), 0, -1) if is_module(parts[:n])]
    assert modules, f"no module of millstream is called {parts[0]}"

    found: Any = importlib.import_module(".".join(["millstream", *parts[: modules[0]]]))
    reduce(getattr, parts[modules[0] :], found)


def is_module(parts: list[str]) -> bool:
    path = SOURCE.joinpath(*parts)
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_the_layers_are_those_that_import_linter_checks() -> None:
    checked = [
        [room_of(name) for name in layer.split("|")] for layer in map(bare, LAYERS["layers"])
    ]
    open_ = [sorted(room for room in layer if room) for layer in checked]

    assert [sorted(bare(line).split("|")) for line in section("The layers")] == open_


def bare(layer: str) -> str:
    return layer.replace(" ", "")


def test_every_room_has_a_layer() -> None:
    layered = {room_of(name) for layer in LAYERS["layers"] for name in bare(layer).split("|")}

    assert {room.removesuffix("/").removesuffix(".py") for room in rooms()} - layered == {
        "__init__"
    }


def test_type_checking_imports_go_downwards_too() -> None:
    assert not CONTRACTS["exclude_type_checking_imports"]


def test_a_class_has_one_name_in_the_whole_tree() -> None:
    # `ms.Table` is a connector to a table; `Source`, inside a function, is Spark's name for one;
    # `State` of a functional stream has the name that Scala gives it.
    trees = (ast.parse(file.read_text()) for file in SOURCE.rglob("*.py"))
    names = Counter(n.name for t in trees for n in ast.walk(t) if isinstance(n, ast.ClassDef))

    assert {name for name, times in names.items() if times > 1} <= {"Source", "State", "Table"}


def test_the_rules_have_no_exceptions() -> None:
    assert not [rule["name"] for rule in CONTRACTS["contracts"] if "ignore_imports" in rule]


def test_the_rooms_that_need_no_spark_load_none_of_it() -> None:
    folders = [
        SOURCE / name.removeprefix("millstream.") for name in NEEDS_NO_SPARK["source_modules"]
    ]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    modules = [".".join(file.relative_to(SOURCE.parent).with_suffix("").parts) for file in files]
    imports = "; ".join(f"import {name.removesuffix('.__init__')}" for name in sorted(modules))
    loaded = f"print(sorted(sys.modules.keys() & {NEEDS_NO_SPARK['forbidden_modules']}))"

    run = subprocess.run(
        [sys.executable, "-c", f"import sys; {imports}; {loaded}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout == "[]\n"
