"""Whether datasets meet their objectives: judged by the driver, and by commands if it is dead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millstream.model.duration import parse_duration
from millstream.model.objective import parse_rows, parse_share
from millstream.observe.measure import Measure, failed_share

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from millstream.model.dataset import Serve, Source, Table
    from millstream.observe.history import History

Breached = Literal["stale", "behind", "failed_rows"]
BREACHED: tuple[Breached, ...] = ("stale", "behind", "failed_rows")
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True, slots=True)
class Breach:
    """An objective that a dataset does not meet."""

    dataset: str
    kind: Breached
    why: str
    since: datetime | None = None
    """None if that is not known."""


def breaches(
    dataset: Source | Table | Serve, measure: Measure, history: History, now: datetime
) -> Iterator[Breach]:
    """Judge a dataset; one that has had no batch yet meets every objective."""
    name, options, last = dataset.name, dataset.options, measure.last
    if last is None:
        return
    if options.freshness is not None:
        limit = parse_duration(options.freshness)
        if (age := now - last.at) > limit:
            why = f"its last batch was {length(age)} ago, and freshness={options.freshness!r}"
            yield Breach(name, "stale", why, last.at + limit)
    rows = measure.behind_rows or 0
    if options.behind is not None and rows > parse_rows(options.behind):
        yield Breach(name, "behind", f"it has {rows:,} rows to read, and behind={options.behind!r}")
    if options.failed_rows is not None:
        share = failed_share(history, name, now)
        if share is not None and share > parse_share(options.failed_rows):
            why = f"{share:.2%} of its rows failed in the last minutes"
            yield Breach(name, "failed_rows", f"{why}, and failed_rows={options.failed_rows!r}")


def length(time: timedelta) -> str:
    """Write a length of time in the unit that suits it.

    >>> from datetime import timedelta
    >>> length(timedelta(seconds=61)), length(timedelta(days=2, hours=1)), length(timedelta())
    ('1 minute', '2 days', '0 seconds')
    """
    seconds = max(time.total_seconds(), 0)
    unit_s, name = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    number = int(seconds // unit_s)
    return f"{number} {name}{'' if number == 1 else 's'}"
