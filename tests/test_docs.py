"""Every block of code in README and docs is run: Python as it stands, commands as typed.

TOML becomes the `millstream.toml` of the commands after it; a block of SQL, the file that is named
before it.
"""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import millstream as ms
from millstream.cli.interrupt import Interrupts
from millstream.cli.program import VERBS, run_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from millstream.testing import Script

ROOT = Path(__file__).parent.parent
CHANGELOG = ROOT / "CHANGELOG.md"
PAGES = [ROOT / "README.md", CHANGELOG, *sorted((ROOT / "docs").rglob("*.md"))]
SQL = re.compile(r"`(\S+\.sql)`:\n\n```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


def type_command(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = shlex.split(line.removeprefix("$ "))
    assert program == "millstream"
    code = run_command(words, Interrupts())
    assert code == 0, capsys.readouterr()


def run_test(test: Callable[..., None], fixtures: dict[str, Any]) -> None:
    test(**{name: fixtures[name] for name in inspect.signature(test).parameters})


@pytest.mark.spark
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if any(kind in ("python", "console") for kind, _ in blocks(p))],
    ids=lambda page: page.stem,
)
def test_every_block_of_a_page_runs(
    page: Path,
    spark: SparkSession,
    stream: Callable[..., Script],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": page.stem}
    for name, text in SQL.findall(page.read_text()):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    written = []
    for kind, text in blocks(page):
        if kind == "python":
            written.append(text)
            file = tmp_path / f"block_{len(written)}.py"
            file.write_text(text)
            before = set(names)
            exec(compile(text, str(file), "exec", dont_inherit=True), names)
            for name in names.keys() - before:
                if name.startswith("test_"):
                    run_test(names[name], {"spark": spark, "stream": stream})
        if kind == "toml":
            Path("millstream.toml").write_text(text)
        if kind == "console":
            if not Path("app.py").exists():
                Path("app.py").write_text(written[0])
            for line in text.splitlines():
                type_command(line, capsys)


def test_every_block_of_sql_has_a_file() -> None:
    for page in PAGES:
        kinds = [kind for kind, _ in blocks(page)]
        assert kinds.count("sql") == len(SQL.findall(page.read_text())), page.name


def test_every_make_target_that_is_named_exists() -> None:
    lines = [
        line
        for page in PAGES
        for kind, text in blocks(page)
        if kind == "sh"
        for line in text.splitlines()
    ]

    assert any(line.startswith("make ") for line in lines)
    for line in lines:
        words = shlex.split(line, comments=True)
        subprocess.run([*words, "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_what_the_changelog_names_exists() -> None:
    text = CHANGELOG.read_text()

    assert {*re.findall(r"\bms\.(\w+)", text)} <= {*ms.__all__}
    assert {*re.findall(r"`millstream (\w+)", text)} <= {*VERBS}
    assert [name for name in re.findall(r"`app\.(\w+)", text) if not hasattr(ms.App, name)] == []
    assert f"## {ms.__version__}" in text
