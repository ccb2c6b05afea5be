from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from millstream.settings import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from tests.cli.conftest import Outcome


def test_help_names_every_command(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("--help")

    assert outcome.code == 0
    for name in ("run", "check", "batch", "ledger", "query", "explain"):
        assert f"\n  {name} " in outcome.out


def test_the_version_is_shown(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("--version")

    assert (outcome.code, outcome.out) == (0, f"millstream {__version__}\n")


def test_an_unknown_command_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("chek")

    assert outcome.code == 2
    assert "Did you mean 'check'?" in outcome.err


def test_an_unknown_option_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("run", "--onse")

    assert outcome.code == 2
    assert "--once" in outcome.err


def test_an_unreadable_length_of_time_is_refused(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("run", "--for", "soon")

    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        "[ARGUMENT_REFUSED] --for cannot be 'soon'",
        '  fix: give a length of time such as 60s or "5 minutes"',
        "  more: millstream explain ARGUMENT_REFUSED",
    ]


def test_an_unexpected_error_is_one_line_and_its_trace_is_in_a_file(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def surprise(*given: object) -> None:
        raise RuntimeError("boo")

    monkeypatch.setattr("millstream.app.find_home", surprise)

    outcome = millstream("ledger")

    [trace] = (tmp_path / "cache" / "logs").glob("trace-*.txt")
    assert outcome.code == 3
    assert outcome.err.startswith("[UNEXPECTED] this should not happen: RuntimeError: boo\n")
    assert str(trace) in outcome.err
    assert 'raise RuntimeError("boo")' in trace.read_text()


def test_help_and_ledger_import_no_spark_and_no_pandas() -> None:
    code = (
        "import sys, millstream.cli, millstream.lake.ledger\n"
        "slow = {'pyspark', 'py4j', 'pandas', 'numpy', 'duckdb', 'rich'} & set(sys.modules)\n"
        "sys.exit(str(slow) if slow else 0)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr == ""
