from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.errors.page import codes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome


@pytest.mark.parametrize("code", ["OVERTAKEN", "overtaken", "[OVERTAKEN]"])
def test_a_page_is_printed_as_it_is_written_with_who_must_act(
    millstream: Callable[..., Outcome], code: str
) -> None:
    outcome = millstream("explain", code)

    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert lines[0] == "# OVERTAKEN"
    assert "## Fix" in lines
    assert lines[-1] == "Spark, a broker, storage or the machine is wrong: exit code 3."


def test_an_error_that_may_pass_by_itself_is_said_to(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("explain", "STORAGE_FULL")

    assert outcome.out.endswith(" To try again, with nothing changed, may succeed.\n")


def test_a_misspelt_code_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("explain", "unknown_inpt")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[UNKNOWN_CODE] there is no error code 'UNKNOWN_INPT'",
        "  fix: did you mean 'UNKNOWN_INPUT'? `millstream explain` lists them all",
    ]


def test_without_a_code_all_are_listed_by_who_must_act(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("explain")

    lines = outcome.out.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    shown = [line.split()[0] for line in lines[:-1] if line.startswith("  ")]
    assert sorted(shown) == [*codes()]
    assert heads == [
        "The app is wrong: exit code 1",
        "A function of the app raised, or gave the wrong thing: exit code 1",
        "The command is wrong: exit code 2",
        "Spark, a broker, storage or the machine is wrong: exit code 3",
        "A comparison or a proof found a difference: exit code 1",
    ]


def test_codes_and_pages_are_given_in_json(millstream: Callable[..., Outcome]) -> None:
    listed, one = millstream("explain", "--json"), millstream("explain", "CYCLE", "--json")

    [cycle] = [entry for entry in json.loads(listed.out) if entry["code"] == "CYCLE"]
    assert len(json.loads(listed.out)) == len(codes())
    assert cycle == {
        "code": "CYCLE",
        "summary": "Datasets read each other in a circle.",
        "branch": "The app is wrong",
        "exit_code": 1,
        "is_transient": False,
    }
    assert json.loads(one.out)["error"] == cycle
    assert json.loads(one.out)["page"].startswith("# CYCLE\n")


def test_a_terminal_gets_the_page_rendered(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.cli.explain.is_terminal", lambda: True)

    outcome = millstream("explain", "CYCLE")

    assert outcome.code == 0
    assert "# CYCLE" not in outcome.out
    assert "CYCLE" in outcome.out


def test_explaining_imports_no_spark() -> None:
    code = (
        "import sys\n"
        "from millstream.cli.interrupt import Interrupts\n"
        "from millstream.cli.program import run_command\n"
        "run_command(['explain', 'CYCLE'], Interrupts())\n"
        "slow = {'pyspark', 'py4j', 'pandas', 'numpy', 'duckdb', 'rich'} & set(sys.modules)\n"
        "sys.exit(str(slow) if slow else 0)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
