"""Objectives: how fresh, how far behind and how faultless a dataset is to be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ROWS = re.compile(r"(\d[\d ,_]*?)(?:\s*rows?)?")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def parse_rows(text: str) -> int:
    """Read a number of rows.

    Raises:
        ValueError: The text is none.

    >>> parse_rows("10000 rows"), parse_rows("10,000"), parse_rows("1 row")
    (10000, 10000, 1)
    """
    found = _ROWS.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return int(re.sub("[ ,_]", "", found[1]))


def parse_share(text: str) -> float:
    """Read a share in percent.

    Raises:
        ValueError: The text is none, or is more than all.

    >>> parse_share("1 %"), parse_share("0.5%")
    (0.01, 0.005)
    """
    found = _PERCENT.fullmatch(text.strip())
    if found is None or float(found[1]) > 100:
        raise ValueError(text)
    return float(found[1]) / 100


OBJECTIVES: Mapping[str, Callable[[str], Any]] = {
    "freshness": parse_duration,
    "behind": parse_rows,
    "failed_rows": parse_share,
}
"""The options of a dataset that are objectives, and how each is read."""

EXPECTED: Mapping[str, str] = {
    "freshness": 'a length of time, such as "5 minutes"',
    "behind": 'a number of rows, such as "10000 rows"',
    "failed_rows": 'a share of at most 100 %, such as "1 %"',
}
"""What may be written."""


def is_objective(option: str, value: object) -> bool:
    """Return whether a value can be read as an objective."""
    try:
        OBJECTIVES[option](value) if isinstance(value, str) else OBJECTIVES[option]("")
    except ValueError:
        return False
    return True
