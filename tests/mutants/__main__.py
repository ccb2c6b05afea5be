"""`python -m tests.mutants`: plant faults one by one, and see whether a test notices."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.document import write_between_marks
from tests.harness import HarnessError
from tests.mutants.fault import SOURCE, read_faults
from tests.mutants.report import Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.mutants.fault import Fault

_ROOT = Path(__file__).parents[2]
_LEFT_OUT = ("build", "dist")
_LONGEST_S = 900.0
"""How long tests may take; those that hang have noticed."""
_ENOUGH = 0.95
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    """Plant what the command line asks for; give the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", default=[], metavar="ROOM", help="plant in these only")
    parser.add_argument("--go-on", action="store_true", help="keep what was found before")
    parser.add_argument("--json", type=Path, default=_ROOT / "bench/results/mutants.json")
    parser.add_argument("--document", type=Path)
    asked = parser.parse_args(arguments)
    # Tests must not outlive this process, whatever ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        report = _run(asked)
    except HarnessError as error:
        _say(str(error))
        return 1
    faults = read_faults()
    _say(f"\n{report.to_markdown(faults)}")
    if asked.document:
        write_between_marks(asked.document, "mutants", report.to_markdown(faults))
    left = report.unnoticed(faults)
    is_good = len(left) <= (1 - _ENOUGH) * len(report.outcomes) and all(f.unnoticed for f in left)
    return 0 if is_good else 1


def _run(asked: argparse.Namespace) -> Report:
    faults = read_faults()
    report = replace(Report.read(asked.json).only(faults), date=str(datetime.now(UTC).date()))
    chosen = [f for f in faults if not asked.only or f.room in asked.only]
    if asked.go_on:
        chosen = [fault for fault in chosen if report.of(fault) is None]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(_ROOT, tree, ignore=_left_out)
        sound: set[str] = set()
        for number, fault in enumerate(chosen, 1):
            outcome = _outcome(fault, tree, sound)
            result = outcome.noticed_by or "NOT NOTICED"
            _say(f"{number}/{len(chosen)} {fault.room}: {fault.what}: {result}")
            report = report.plus(fault, outcome)
            report.write(asked.json)
    return report


def _left_out(folder: str, names: list[str]) -> list[str]:
    """Name what tests do not need: what was installed, built and compiled."""
    is_root = Path(folder) == _ROOT
    made = [name for name in names if is_root and (name.startswith(".") or name in _LEFT_OUT)]
    return [*made, "__pycache__"]


def _outcome(fault: Fault, tree: Path, sound: set[str]) -> Outcome:
    """Plant a fault; what notices it must succeed without it, and is `sound` then."""
    began = time.monotonic()
    with fault.planted(tree):
        noticed_by = _noticed_by(fault, tree)
    seconds = round(time.monotonic() - began, 1)
    if noticed_by and noticed_by not in sound:
        if without := _noticed_by(fault, tree, only=noticed_by):
            message = f"{without} fails without a fault"
            raise HarnessError(message)
        sound.add(noticed_by)
    return Outcome(fault.file, fault.old, fault.new, noticed_by, seconds)


def _noticed_by(fault: Fault, tree: Path, only: str = "") -> str:
    """Return the first test that fails; empty if none does.

    Raises:
        HarnessError: There are no such tests, or they do not begin.
    """
    tests = [only] if "::" in only else fault.tests
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree / SOURCE.parent)}
    with subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            reported, _ = process.communicate(timeout=_LONGEST_S)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return "a test that hangs"
            raise
    failed = first_failure(reported)
    if process.returncode == 0:
        return ""
    if process.returncode != 1 or not failed:
        message = f"{fault.room}: {fault.what!r}: tests do not run:\n{reported}"
        raise HarnessError(message)
    return failed


def first_failure(output: str) -> str:
    """Return the first test that pytest's summary names; a log of a test is no summary."""
    found = _FAILED.search(output)
    return found[1] if found else ""


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
