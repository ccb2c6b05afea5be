"""The tables of a report, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.fault import MEANING
from tests.chaos.findings import Findings
from tests.chaos.report import percentile, recoveries
from tests.document import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.report import Outcome, Report

_COUNTED = ("lost", "duplicated", "torn", "wrong", "regressed")


def to_markdown(report: Report) -> str:
    """Write a report as two tables: by app, and by what was done."""
    outcomes = [outcome for trial in report.trials for outcome in trial.outcomes]
    struck = sum(outcome.struck for outcome in outcomes)
    head = (
        f"{report.date}, seed {report.seed}: {len(outcomes)} faults, {struck} of them struck where "
        "they were meant to; the others found nothing there in time, and the driver was killed."
    )
    return "\n".join((head, "", *_by_app(report), "", *_by_kind(report, outcomes)))


def _by_app(report: Report) -> Sequence[str]:
    rows = []
    for app in report.apps:
        trials = report.of(app)
        found = sum((trial.findings for trial in trials), start=Findings())
        outcomes = [outcome for trial in trials for outcome in trial.outcomes]
        rows.append(
            [
                app,
                f"{len(outcomes)}",
                f"{sum(trial.rows for trial in trials):,}",
                f"{sum(trial.batches for trial in trials):,}",
                *(str(getattr(found, count)) for count in _COUNTED),
                str(sum(trial.misbehaved for trial in trials)),
                *_times(outcomes),
            ]
        )
    heads = ["app", "faults", "rows", "batches", *_COUNTED, "misbehaved"]
    return table([*heads, "recovery p50", "p99"], rows)


def _by_kind(report: Report, outcomes: Sequence[Outcome]) -> Sequence[str]:
    rows = []
    for kind, meaning in MEANING.items():
        if same := [outcome for outcome in outcomes if outcome.kind == kind]:
            by_app = (
                str(sum(o.kind == kind for trial in report.of(app) for o in trial.outcomes))
                for app in report.apps
            )
            rows.append([meaning, str(len(same)), *by_app, *_times(same)])
    return table(["fault", "faults", *report.apps, "recovery p50", "p99"], rows)


def _times(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    known = recoveries(outcomes)
    median, worst = percentile(known, 50), percentile(known, 99)
    return tuple("-" if s is None else f"{s:.1f} s" for s in (median, worst))  # type: ignore[return-value]
