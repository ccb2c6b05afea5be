"""The progress of set-up, reported to the caller."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str, str], None]
"""Called with a subject and a fact: `report("jars", "8 locked, cached")`."""


def silent(subject: str, fact: str) -> None:
    """Report nothing."""
