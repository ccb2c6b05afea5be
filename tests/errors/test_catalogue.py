"""Every error has a page, and every page shows the full text of its error as the class writes it.

Of the blocks in a page, `text` is the message, word for word; `console` is run, without Spark, on
the first `python` block as `app.py`, beside the `toml` block as `millstream.toml` and each block of
`sql` as the file named before it, and prints the first message; other `python` blocks compile;
`sh` needs Spark, Kafka or a broken machine, and is only shown.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from millstream import errors
from millstream.cli.interrupt import Interrupts
from millstream.cli.program import VERBS, run_command
from millstream.errors import MillstreamError
from millstream.errors.catalogue import (
    PAGES,
    branch_of,
    kinds,
    page_of,
    reference,
    summary_of,
)

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"`(\S+\.sql)`:\n\n```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SEE_ALSO = re.compile(r"^See also: (`[A-Z_]+`(?:, `[A-Z_]+`)*)\.\n\Z", re.MULTILINE)
FOLDER = "/srv/shop"
"""Where pages pretend that their commands are typed."""


def samples() -> dict[str, list[MillstreamError]]:
    found = defaultdict(list)
    for name in sorted({module_of(kind) for kind in kinds()}):
        if Path(__file__).with_name(f"{name}.py").exists():
            for error in importlib.import_module(f"tests.errors.{name}").SAMPLES:
                found[error.code].append(error)
    return dict(found)


def module_of(kind: type[MillstreamError]) -> str:
    return kind.__module__.rpartition(".")[2]


SAMPLES = samples()
PAGED = [kind for kind in kinds() if (PAGES / f"{kind.code}.md").exists()]


def blocks(kind: type[MillstreamError], language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page_of(kind)) if found == language]


def test_every_error_has_a_page_and_every_page_an_error() -> None:
    pages, codes = {file.stem for file in PAGES.iterdir()}, {kind.code for kind in kinds()}

    lacking = [f"write src/millstream/errors/pages/{code}.md" for code in sorted(codes - pages)]
    stray = [f"no error has the code of pages/{stem}.md" for stem in sorted(pages - codes)]
    assert not lacking + stray, "\n".join(lacking + stray)


def test_every_error_has_a_sample() -> None:
    lacking = [
        f"add a realistic {kind.__name__} to SAMPLES in tests/errors/{module_of(kind)}.py"
        for kind in kinds()
        if kind.code not in SAMPLES
    ]

    assert not lacking, "\n".join(lacking)


@pytest.mark.parametrize("kind", PAGED, ids=lambda kind: kind.code)
def test_the_messages_of_a_page_are_those_of_the_error(kind: type[MillstreamError]) -> None:
    written = [f"{error}\n" for error in SAMPLES.get(kind.code, ())]

    assert blocks(kind, "text") == written, f"these are to be the `text` blocks of {kind.code}.md"


@pytest.mark.parametrize("kind", PAGED, ids=lambda kind: kind.code)
def test_a_page_says_what_happened_how_to_fix_it_and_what_is_akin(
    kind: type[MillstreamError],
) -> None:
    page = page_of(kind)
    title, _, text = page.partition("\n\n")
    akin = SEE_ALSO.search(page)

    assert title == f"# {kind.code}"
    assert not text.startswith(("#", "```")), "begin with what happened and why it is an error"
    assert page.count("\n## Fix\n\n") == 1
    assert akin is not None, "end with a line such as: See also: `UNKNOWN_INPUT`, `CYCLE`."
    assert kind.code not in akin[1]
    assert {*re.findall(r"\w+", akin[1])} <= {kind.code for kind in kinds()}


@pytest.mark.parametrize("kind", PAGED, ids=lambda kind: kind.code)
def test_commands_that_a_page_or_a_message_names_exist(kind: type[MillstreamError]) -> None:
    named = re.findall(r"(?:`|^|\$ )millstream ([a-z]+)", page_of(kind), re.MULTILINE)

    assert {*named} <= {*VERBS}


@pytest.mark.parametrize("kind", PAGED, ids=lambda kind: kind.code)
def test_the_python_of_a_page_compiles(kind: type[MillstreamError]) -> None:
    for text in blocks(kind, "python"):
        compile(text, f"{kind.code}.md", "exec")


@pytest.mark.parametrize(
    "kind", [k for k in PAGED if blocks(k, "console")], ids=lambda kind: kind.code
)
def test_the_example_of_a_page_gives_the_error(
    kind: type[MillstreamError],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MILLSTREAM_HOME", "MILLSTREAM_PROFILE", "ORDERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    for text in blocks(kind, "python")[:1]:
        Path("app.py").write_text(text)
    for name, text in SQL.findall(page_of(kind)):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    for text in blocks(kind, "toml"):
        Path("millstream.toml").write_text(text)

    [typed] = blocks(kind, "console")
    code = run_command(shlex.split(typed.removeprefix("$ millstream ")), Interrupts())

    told = "".join(capsys.readouterr()).replace(str(tmp_path), FOLDER)
    assert blocks(kind, "text")[0] in told
    assert len(re.findall(r"^\[[A-Z_]+\] ", told, re.MULTILINE)) == len(
        re.findall(r"^\[[A-Z_]+\] ", blocks(kind, "text")[0], re.MULTILINE)
    )
    assert code == kind.exit_code


def test_every_message_is_written_in_the_house_style() -> None:
    banned = re.compile(r"\b(please|failed to|unable to|will)\b", re.IGNORECASE)

    for error in (error for of_one in SAMPLES.values() for error in of_one):
        assert banned.search(str(error)) is None, error
        assert not error.fix.endswith("."), error


def test_every_summary_is_one_line_of_its_own() -> None:
    told = {summary_of(kind): kind for kind in kinds()}

    assert len(told) == len(kinds())
    assert all(line.endswith(".") and len(line) < 100 for line in told)


def test_the_branch_of_an_error_says_who_must_act() -> None:
    assert branch_of(errors.KeyMissingError) is errors.DeclarationError
    assert branch_of(errors.LateRowsError) is errors.UserCodeError
    assert branch_of(errors.NotEqualError) is MillstreamError


def test_the_reference_in_docs_lists_every_error() -> None:
    written = (ROOT / "docs" / "errors.md").read_text()

    wanted = reference("../src/millstream/errors/pages")
    assert written == wanted, "run: python -m millstream.errors.catalogue docs/errors.md"
