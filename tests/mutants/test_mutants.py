from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness import HarnessError
from tests.mutants.__main__ import first_failure
from tests.mutants.fault import SOURCE, Fault, read_faults
from tests.mutants.report import Outcome, Report

ROOT = Path(__file__).parents[2]
FAULT = Fault("lake", "a stale epoch", "lake/fence.py", "held > mine", "held >= mine", ("tests",))


def copy_of(fault: Fault, tree: Path, text: str) -> Path:
    path = tree / SOURCE / fault.file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("fault", read_faults(), ids=lambda fault: f"{fault.room}: {fault.what}")
def test_every_fault_of_the_list_can_still_be_planted(fault: Fault, tmp_path: Path) -> None:
    text = (ROOT / SOURCE / fault.file).read_text()
    copy = copy_of(fault, tmp_path, text)

    with fault.planted(tmp_path) as planted:
        compile(planted.read_text(), fault.file, "exec")

    assert copy.read_text() == text
    named = [test.partition("::")[0] for test in fault.tests if "/" in test]
    assert named
    assert all((ROOT / test).exists() for test in named)


def test_every_fault_of_the_list_has_a_name_of_its_own() -> None:
    names = Counter((fault.room, fault.what) for fault in read_faults())

    assert names.total() >= 120
    assert names.total() == len(names)


@pytest.mark.parametrize("text", ["", "held > mine or held > mine"])
def test_a_text_that_is_not_there_exactly_once_is_not_replaced(tmp_path: Path, text: str) -> None:
    path = copy_of(FAULT, tmp_path, text)

    with pytest.raises(HarnessError, match="has 'held > mine'"), FAULT.planted(tmp_path):
        pass
    assert path.read_text() == text


def test_an_outcome_counts_as_long_as_its_fault_is_the_same(tmp_path: Path) -> None:
    noticed = Outcome(FAULT.file, FAULT.old, FAULT.new, "tests/lake/test_fence.py::test", 2.0)
    Report("2026-11-18", {}).plus(FAULT, noticed).write(tmp_path / "found.json")
    other = Fault(
        "lake", "a stale epoch", "lake/fence.py", "held > mine", "held < mine", ("tests",)
    )

    report = Report.read(tmp_path / "found.json")

    assert report.of(FAULT) == noticed
    assert report.only([other]).outcomes == {}
    assert "| lake | 1 | 1 | 0 | 100.0 % | 2 |" in report.to_markdown([FAULT])


def test_a_fault_that_no_test_noticed_is_listed_with_the_reason() -> None:
    fault = replace(FAULT, unnoticed="why")
    report = Report("today", {}).plus(fault, Outcome(fault.file, fault.old, fault.new, "", 1.0))

    assert report.unnoticed([fault]) == [fault]
    assert report.to_markdown([fault]).endswith("- lake: a stale epoch: why")


def test_an_error_that_a_test_logs_is_no_test_that_failed() -> None:
    logged = "ERROR    py4j.clientserver:clientserver.py:648 There was an exception"

    assert first_failure(f"{logged}\nFAILED tests/a/test_b.py::test_c[x y] - CrashError") == (
        "tests/a/test_b.py::test_c[x y]"
    )
    assert first_failure(f"{logged}\nERROR tests/a/test_b.py - ImportError") == ""
