"""Crash tests of real drivers: killed in every way, one after another on one home, and judged.

Any app can be tried: `python -m millstream.testing.chaos --apps app.py`. One that reads input from
outside needs a `Feeder`, named as `app.py=module:name`.
"""

from __future__ import annotations

from millstream.testing.chaos.feed import Clock, Feeder, Folder, Span
from millstream.testing.chaos.findings import Findings
from millstream.testing.chaos.oracle import Oracle
from millstream.testing.chaos.report import Outcome, Report, TrialReport
from millstream.testing.chaos.schedule import schedule
from millstream.testing.chaos.subject import Subject
from millstream.testing.chaos.trial import Trial

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
