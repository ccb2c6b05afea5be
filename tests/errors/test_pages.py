"""Every page is an error that code raises, with the facts that the page has places for.

Of the blocks in a page, `text` is a message; `console` is run, without Spark, on the first `python`
block as `app.py`, beside the `toml` block as `millstream.toml` and each block of `sql` as the file
named before it, and prints the first message; other `python` blocks compile; `sh` needs Spark, a
home, a server or a broken machine: tests/cli/test_error_pages.py runs what needs one of the first
two, and lists the rest.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING

import pytest

from millstream.cli.interrupt import Interrupts
from millstream.cli.program import VERBS, run_command
from millstream.errors.catalogue import HEADINGS, exit_code, pages, reference
from millstream.errors.error import KINDS

if TYPE_CHECKING:
    from millstream.errors.page import Page

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"`(\S+\.sql)`:\n\n```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SEE_ALSO = re.compile(r"^See also: (`[A-Z_]+`(?:, `[A-Z_]+`)*)\.\n\Z", re.MULTILINE)
FOLDER = "/srv/shop"
"""Where pages pretend that their commands are typed."""
EVERY = pytest.mark.parametrize("page", pages(), ids=lambda page: page.code)


def blocks(page: Page, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.text) if found == language]


@cache
def raised() -> dict[str, list[tuple[str, set[str | None]]]]:
    """Find where each code is raised, and with which facts."""
    found = defaultdict(list)
    for file in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(file.read_bytes())
        names = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        if not any(
            str(n.module).startswith("millstream.errors") and "fault" in {a.name for a in n.names}
            for n in names
        ) and file.parts[-2:] != ("errors", "error.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "fault":
                code = ast.literal_eval(node.args[0])
                facts = {keyword.arg for keyword in node.keywords} - {"at"}
                found[code].append((f"{file.relative_to(ROOT)}:{node.lineno}", facts))
    return dict(found)


def test_every_page_is_raised_and_all_that_is_raised_has_a_page() -> None:
    known = {page.code for page in pages()}

    lacking = [f"{raised()[code][0][0]}: no page {code}.md" for code in {*raised()} - known]
    stray = [f"nothing raises {code}" for code in sorted(known - {*raised()})]
    assert lacking + stray == []


@EVERY
def test_an_error_is_raised_with_the_facts_that_its_page_has_places_for(page: Page) -> None:
    for place, facts in raised()[page.code]:
        assert facts == page.places, f"{place} raises {page.code} with other facts than its page"


@EVERY
def test_the_wording_of_a_page_has_places_for_facts_alone(page: Page) -> None:
    assert all(name.isidentifier() for name in page.places), "compute it where it is raised"
    assert "at" not in page.places


@EVERY
def test_the_messages_of_a_page_are_those_of_the_error(page: Page) -> None:
    what, fix = pattern_of(page.what, "w"), pattern_of(page.fix, "f")
    message = re.compile(rf"\[{page.code}\] {what}(\n  at:  [^\n]+)?\n  fix: {fix}\n", re.DOTALL)

    assert blocks(page, "text")
    for text in blocks(page, "text"):
        assert message.fullmatch(text), f"{text}\nis not\n{message.pattern}"


def pattern_of(template: str, prefix: str) -> str:
    """Turn wording into a pattern: a fact is anything, and the same each time."""
    pattern, seen = "", set()
    for literal, name, spec, conversion in Formatter().parse(template):
        pattern += re.escape(literal)
        if name:
            group = f"{prefix}_{name}_{conversion or ''}"
            pattern += f"(?P={group})" if group in seen else f"(?P<{group}>.*)"
            seen.add(group)
        assert not spec or name
    return pattern


@EVERY
def test_a_page_says_what_happened_how_to_fix_it_and_what_is_akin(page: Page) -> None:
    akin = SEE_ALSO.search(page.text)

    assert page.kind in KINDS
    assert not page.text.startswith(("#", "```")), "begin with what happened and why it is an error"
    assert page.text.count("\n## Fix\n\n") == 1
    assert akin is not None, "end with a line such as: See also: `UNKNOWN_INPUT`, `CYCLE`."
    assert page.code not in akin[1]
    assert {*re.findall(r"\w+", akin[1])} <= {page.code for page in pages()}


@EVERY
def test_a_page_is_named_after_its_code(page: Page) -> None:
    assert (ROOT / f"src/millstream/errors/pages/{page.code}.md").exists()
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", page.code)


@EVERY
def test_commands_that_a_page_or_a_message_names_exist(page: Page) -> None:
    texts = "\n".join((page.fix, page.text))

    named = re.findall(r"(?:`|^|\$ )millstream ([a-z]+)", texts, re.MULTILINE)

    assert {*named} <= {*VERBS}


@EVERY
def test_the_python_of_a_page_compiles(page: Page) -> None:
    for text in blocks(page, "python"):
        compile(text, f"{page.code}.md", "exec")


@pytest.mark.parametrize(
    "page", [p for p in pages() if blocks(p, "console")], ids=lambda page: page.code
)
def test_the_example_of_a_page_gives_the_error(
    page: Page,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MILLSTREAM_HOME", "MILLSTREAM_PROFILE", "ORDERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    for text in blocks(page, "python")[:1]:
        Path("app.py").write_text(text)
    for name, text in SQL.findall(page.text):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    for text in blocks(page, "toml"):
        Path("millstream.toml").write_text(text)

    [typed] = blocks(page, "console")
    code = run_command(shlex.split(typed.removeprefix("$ millstream ")), Interrupts())

    printed = "".join(capsys.readouterr()).replace(str(tmp_path), FOLDER)
    assert blocks(page, "text")[0] in printed
    assert len(re.findall(r"^\[[A-Z_]+\] ", printed, re.MULTILINE)) == len(
        re.findall(r"^\[[A-Z_]+\] ", blocks(page, "text")[0], re.MULTILINE)
    )
    assert code == exit_code(page.kind)


@EVERY
def test_every_message_is_written_in_the_house_style(page: Page) -> None:
    banned = re.compile(r"\b(please|failed to|unable to|will)\b", re.IGNORECASE)

    for text in (page.what, page.fix, *blocks(page, "text")):
        assert banned.search(text) is None, text
    assert not page.what.endswith(".")
    assert not page.fix.endswith(".")


def test_every_summary_is_one_line_of_its_own() -> None:
    lines = {page.means for page in pages()}

    assert len(lines) == len(pages())
    assert all(line.endswith(".") and len(line) < 100 for line in lines)


def test_every_kind_has_a_heading() -> None:
    assert {*HEADINGS} == {*KINDS}


def test_the_reference_in_docs_lists_every_error() -> None:
    written = (ROOT / "docs" / "errors.md").read_text()

    wanted = reference("../src/millstream/errors/pages")
    assert written == wanted, "run: python -m millstream.errors.catalogue docs/errors.md"
