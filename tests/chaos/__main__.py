"""`python -m tests.chaos`: kill the drivers of apps in every way, and judge."""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.count import count_calls
from tests.chaos.fault import MEANING
from tests.chaos.report import Report
from tests.chaos.scene import Scene
from tests.chaos.schedule import SHARES, schedule
from tests.chaos.subject import Subject
from tests.chaos.table import to_markdown
from tests.chaos.trial import Trial
from tests.document import write_between_marks
from tests.harness import HarnessError

from millstream.errors import MillstreamError
from millstream.settings import DEFAULT_FILE
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.chaos.fault import Fault
    from tests.chaos.report import Outcome, TrialReport


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; give its exit code."""
    asked = _parser().parse_args(arguments)
    # Drivers must not outlive this process, whatever ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        with _place(asked.place) as place:
            if asked.count:
                _count(asked, place)
            else:
                _run(asked, place)
    except MillstreamError as error:
        _say(str(error))
        return error.exit_code
    except HarnessError as error:
        _say(str(error))
        return 1
    return 0


def _run(asked: argparse.Namespace, place: Path) -> None:
    report = _begun(asked)
    asked.seed = report.seed
    _say(f"seed {report.seed}")
    for subject, faults, home in itertools.islice(_plans(asked, place), len(report.trials), None):
        trial = _trial(subject, faults, home, report.seed)
        report = replace(report, trials=(*report.trials, trial))
        if asked.json:
            # After every trial: an hour's results are not lost to whatever ends the last minute.
            asked.json.parent.mkdir(parents=True, exist_ok=True)
            asked.json.write_text(report.to_json())
    _say(f"\n{to_markdown(report)}")
    if asked.document:
        write_between_marks(asked.document, "chaos", to_markdown(report))
    if not report.is_good:
        found = "\n  ".join(_faults(report))
        message = f"tables are wrong after faults of --seed {asked.seed}:\n  {found}"
        raise HarnessError(message)


@contextmanager
def _place(given: Path | None) -> Iterator[Path]:
    """Choose where the homes are: where the user says, to keep them, or nowhere for long."""
    if given is not None:
        yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="millstream-chaos-") as place:
        yield Path(place)


def _begun(asked: argparse.Namespace) -> Report:
    """Give what an earlier run has left, if this one is to go on with it."""
    if asked.go_on and asked.json and asked.json.exists():
        return Report.from_json(asked.json.read_text())
    return Report(seed=asked.seed, date=datetime.now(UTC).date().isoformat())


def _plans(
    asked: argparse.Namespace, place: Path
) -> Iterator[tuple[Subject, Sequence[Fault], Path]]:
    """Say what is done in which home; the same for the same seed, apps and points."""
    subjects = [Subject.parse(text) for text in asked.apps]
    shares = {kind: share for kind, share in SHARES.items() if kind not in asked.without}
    for number, subject in enumerate(subjects):
        here = place / str(number)
        points = asked.points // len(subjects) + (number < asked.points % len(subjects))
        queries = Scene(subject.app, subject.feeder(here / "input", asked.seed), here).queries
        faults = schedule(queries, seed=asked.seed, points=points, shares=shares)
        for home, planned in enumerate(faults):
            yield subject, planned, here / f"home-{home}"


def _trial(subject: Subject, faults: Sequence[Fault], place: Path, seed: int) -> TrialReport:
    _say(f"\n{subject.app}: {len(faults)} faults")
    began = time.monotonic()
    with Trial(subject.app, subject.feeder(place / "input", seed), place) as trial:
        for number, fault in enumerate(faults, 1):
            _say(f"  {number:4}/{len(faults)} {_line(trial.suffer(fault))}")
        # A session stays with the process; it is not there before drivers need the machine.
        spark = open_session("chaos", log_dir=place / "logs")
        report = trial.finish(spark)
    took_s = time.monotonic() - began
    _say(f"  {report.rows:,} rows, {report.batches:,} batches, {took_s:.0f} s: {report.findings}")
    if report.broken:
        _say(f"  ✗ what was left could not be taken in: {report.broken}")
    return report


def _count(asked: argparse.Namespace, place: Path) -> None:
    for number, text in enumerate(asked.apps):
        subject, here = Subject.parse(text), place / str(number)
        scene = Scene(subject.app, subject.feeder(here / "input", asked.seed), here)
        counted = count_calls(scene, for_s=asked.count)
        reported = ", ".join(f"{times} {call}" for call, times in sorted(counted.items()))
        _say(f"{subject.app}: {reported} by one thread; {scene.batches} batches")
        scene.end_orphans()


def _line(outcome: Outcome) -> str:
    verdict = "✓" if outcome.is_good else f"✗ {outcome.findings} {outcome.broken}"
    missed = "" if outcome.struck else "  not reached"
    return f"{outcome.kind:7} {outcome.fault:32} {outcome.lasted_s:6.1f} s  {verdict}{missed}"


def _faults(report: Report) -> Iterator[str]:
    for trial in report.trials:
        yield from (f"{trial.app}: {remark}" for remark in trial.findings.remarks)
        if trial.broken:
            yield f"{trial.app}: what was left could not be taken in: {trial.broken}"
        for outcome in trial.outcomes:
            if outcome.broken:
                yield f"{trial.app}: after {outcome.fault} a driver {outcome.broken}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--apps",
        nargs="+",
        default=[DEFAULT_FILE],
        metavar="APP",
        help="app.py, or app.py=module:name with what makes its feeder of a folder and a seed",
    )
    parser.add_argument("--points", type=int, default=100, help="how many faults, over all apps")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--without", nargs="*", choices=tuple(MEANING), default=())
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to keep the results")
    parser.add_argument(
        "--go-on", action="store_true", help="go on after the last trial that FILE holds, if any"
    )
    parser.add_argument("--document", type=Path, metavar="FILE", help="where to put the tables")
    parser.add_argument("--place", type=Path, metavar="DIR", help="a new folder to keep homes in")
    parser.add_argument("--count", type=float, metavar="S", help="only count system calls for S s")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
