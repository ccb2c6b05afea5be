"""Damage to checkpoints: every file deleted, emptied, cut, changed or overwritten, and the outcome.

A home that has run is copied, one file of its checkpoints is damaged, and it is repaired and run on
with more input. It must hold then what it would hold had nothing happened, or refuse plainly.
"""

from tests.damage.case import KINDS, Case, cases, chosen
from tests.damage.judge import OUTCOMES, Finished, Judge, Outcome, Verdict
from tests.damage.sweep import Sweep

__all__ = [
    "KINDS",
    "OUTCOMES",
    "Case",
    "Finished",
    "Judge",
    "Outcome",
    "Sweep",
    "Verdict",
    "cases",
    "chosen",
]
