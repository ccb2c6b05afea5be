"""Crash tests of real drivers: killed in every way, one after another on one home, and judged.

Any app can be tried: `python -m tests.chaos --apps app.py`. One that reads input from
outside needs a `Feeder`, named as `app.py=module:name`.
"""

from __future__ import annotations

from tests.chaos.feed import Clock, Feeder, Folder, Span
from tests.chaos.findings import Findings
from tests.chaos.oracle import Oracle
from tests.chaos.report import Outcome, Report, TrialReport
from tests.chaos.schedule import schedule
from tests.chaos.subject import Subject
from tests.chaos.trial import Trial

__all__ = [
    "Clock",
    "Feeder",
    "Findings",
    "Folder",
    "Oracle",
    "Outcome",
    "Report",
    "Span",
    "Subject",
    "Trial",
    "TrialReport",
    "schedule",
]
