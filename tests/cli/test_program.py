from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.settings import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

    from millstream.lake.home import Home

SHOP = """\
import millstream as ms
from pyspark.sql import DataFrame, functions as F
app = ms.App("shop")
@app.source()
def orders(): return ms.Memory("id BIGINT")
@app.table()
def paid(orders: DataFrame) -> DataFrame: return orders.where(F.col("id") > 1)
"""


def test_help_names_every_command(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("--help")

    assert outcome.code == 0
    for name in (
        "new",
        "run",
        "check",
        "batch",
        "stop",
        "graph",
        "status",
        "show",
        "query",
        "explain",
    ):
        assert f"\n  {name} " in outcome.out


def test_the_version_is_shown(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("--version")

    assert (outcome.code, outcome.out) == (0, f"millstream {__version__}\n")


def test_an_unknown_command_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("chek")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[UNKNOWN_COMMAND] millstream has no command 'chek'",
        "  fix: did you mean 'check'? commands are alerts, backtest, backup, batch, check, "
        "checkpoint, console, doctor, explain, files, forget, graph, ledger, maintain, models, "
        "new, query, restore, run, sample, settings, show, state, status, stop, top, verify, why",
    ]


def test_an_unknown_command_below_another_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("checkpoint", "repare")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[UNKNOWN_COMMAND] millstream checkpoint has no command 'repare'",
        "  fix: did you mean 'repair'? commands are inspect, rebuild, repair",
    ]


def test_an_unknown_option_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("ledger", "--hoem")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[UNKNOWN_FLAG] millstream ledger has no option '--hoem'",
        "  fix: did you mean '--home'? options are --help, --home, --json, --profile",
    ]


def test_too_many_words_are_refused_with_where_to_read_on(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("explain", "FAULTS", "CYCLE")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[USAGE] millstream explain: Got unexpected extra argument(s) (CYCLE)",
        "  fix: `millstream explain --help` shows what it takes",
    ]


def test_no_words_at_all_show_the_help(millstream: Callable[..., Outcome]) -> None:
    assert millstream() == millstream("--help")


def test_a_shell_is_given_the_script_that_completes_words(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Which shell it is would else be guessed from what runs the tests.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")

    outcome = millstream("--show-completion", "bash")

    assert outcome.code == 0
    assert "_MILLSTREAM_COMPLETE=complete_bash" in outcome.out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("millstream gr", "graph"),
        ("millstream show or", "orders"),
        ("millstream new a --t", "--template"),
    ],
)
def test_a_shell_is_offered_commands_options_and_datasets(
    words: str,
    offered: str,
    millstream: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "app.py").write_text(SHOP)
    monkeypatch.setenv("_MILLSTREAM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))

    outcome = millstream()

    assert outcome.code == 0
    assert outcome.out.startswith(offered)


def test_an_unreadable_length_of_time_is_refused(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("run", "--for", "soon")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[ARGUMENT_REFUSED] --for cannot be 'soon'",
        '  fix: give a length of time such as 60s or "5 minutes"',
    ]


def test_an_unexpected_error_is_one_line_and_its_trace_is_in_a_file(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*given: object) -> None:
        raise RuntimeError("boo")

    monkeypatch.setattr("millstream.loading.find_home", surprise)

    outcome = millstream("ledger")

    [trace] = re.findall(r"\S+/logs/trace-\S+\.txt", outcome.err)
    assert outcome.code == 3
    assert outcome.err.startswith("[UNEXPECTED] this should not happen: RuntimeError: boo\n")
    assert 'raise RuntimeError("boo")' in Path(trace).read_text()


@pytest.mark.parametrize(
    "words",
    ["--help", "graph", "graph --format svg", "status", "show paid", "why paid", "stop", "ledger"],
)
def test_a_command_that_needs_no_engine_imports_none_and_reads_no_page_of_an_error(
    words: str, home: Home
) -> None:
    (home.path.parent.parent / "app.py").write_text(SHOP)
    code = (
        "import sys\n"
        "from millstream.cli.interrupt import Interrupts\n"
        "from millstream.cli.program import run_command\n"
        f"code = run_command({words.split()!r}, Interrupts())\n"
        "slow = {'pandas', 'numpy', 'pyarrow', 'duckdb', 'rich', 'sqlglot'}\n"
        "from millstream.errors.page import read_page\n"
        "found = slow & set(sys.modules) or read_page.cache_info().currsize\n"
        "sys.exit(str(found) if found else code)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=home.path.parent.parent,
    )

    assert (done.returncode, done.stderr) == (0, "")
