"""The table of a report, for people: in the terminal, and between two marks of a document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import MarksMissingError
from millstream.testing.chaos.fault import MEANING
from millstream.testing.chaos.findings import Findings
from millstream.testing.chaos.report import Report, percentile, recoveries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.testing.chaos.report import Outcome

BEGIN, END = "<!-- chaos:begin -->", "<!-- chaos:end -->"
"""What the table stands between, in a document."""

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


def put_between_marks(document: str, text: str, *, name: str) -> str:
    """Put a text in the place of whatever stands between the marks.

    Raises:
        MarksMissingError: The document has no such marks.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise MarksMissingError(name, marks=(BEGIN, END))
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


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
    return _table([*heads, "recovery p50", "p99"], rows)


def _by_kind(report: Report, outcomes: Sequence[Outcome]) -> Sequence[str]:
    rows = []
    for kind, meaning in MEANING.items():
        if same := [outcome for outcome in outcomes if outcome.kind == kind]:
            by_app = (
                str(sum(o.kind == kind for trial in report.of(app) for o in trial.outcomes))
                for app in report.apps
            )
            rows.append([meaning, str(len(same)), *by_app, *_times(same)])
    return _table(["fault", "faults", *report.apps, "recovery p50", "p99"], rows)


def _times(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    known = recoveries(outcomes)
    median, worst = percentile(known, 50), percentile(known, 99)
    return tuple("-" if s is None else f"{s:.1f} s" for s in (median, worst))  # type: ignore[return-value]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def main(results: str, document: str) -> None:
    """Write the table of kept results into a document."""
    report = Report.from_json(Path(results).read_text())
    target = Path(document)
    target.write_text(put_between_marks(target.read_text(), to_markdown(report), name=document))


if __name__ == "__main__":
    main(*sys.argv[1:])
