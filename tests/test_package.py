"""What `pip install` brings: the package, its pages and templates, and nothing of our own tests."""

from __future__ import annotations

import re
import subprocess
import zipfile
from email import message_from_string
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import millstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

ROOT = Path(__file__).parent.parent
BUILDER = ROOT / "build/bootstrap/bin/python"
TEMPLATES = "millstream/cli/templates/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    if not BUILDER.exists():
        pytest.skip("`make setup` installs the builder")
    folder = tmp_path_factory.mktemp("wheel")
    build = [str(BUILDER), "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    [file] = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_string(wheel.read(file).decode())


def files_of(folder: Path) -> set[str]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(f.relative_to(folder)) for f in files if "__pycache__" not in f.parts}


def test_a_wheel_holds_the_package_and_the_examples_as_templates(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}

    package = {f"millstream/{file}" for file in files_of(ROOT / "src/millstream")}
    templates = {f"{TEMPLATES}{file}" for file in files_of(ROOT / "examples")}
    assert held == package | templates
    assert "millstream/errors/pages/UNKNOWN_INPUT.md" in package
    assert f"{TEMPLATES}shop/test_app.py" in templates


def test_a_wheel_holds_no_tests_but_those_of_templates(wheel: zipfile.ZipFile) -> None:
    names = [name for name in wheel.namelist() if not name.startswith(TEMPLATES)]

    assert [
        n for n in names if re.search(r"(^|/)(tests?|chaos|damage|test_\w+|conftest)\b", n)
    ] == []


def test_every_module_of_the_kit_is_used_by_the_package_or_shown_to_users() -> None:
    kit = ROOT / "src/millstream/testing"
    shown = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    package = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.md"),
        ROOT / "pyproject.toml",
    ]

    def is_used(module: Path) -> bool:
        name = ".".join(module.relative_to(ROOT / "src").with_suffix("").parts)
        texts = (file.read_text() for file in (*shown, *package) if file != module)
        return any(re.search(rf"\b{name}\b", text) for text in texts)

    modules = [file for file in kit.rglob("*.py") if file.name != "__init__.py"]
    assert [file.name for file in modules if not is_used(file)] == []


def test_a_wheel_says_what_it_is_and_under_which_license(
    wheel: zipfile.ZipFile, metadata: Message
) -> None:
    license_file = next(name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))

    assert wheel.read(license_file).decode().lstrip().startswith("Apache License")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Version"] == millstream.__version__
    assert metadata["Summary"].startswith("Continuous applications on Apache Spark")


def test_a_wheel_names_no_address_that_may_be_somebody_elses(metadata: Message) -> None:
    assert metadata.get_all("Project-URL", []) == []
    assert metadata["Home-page"] is None
