"""Queries that failed, recorded in the home for every later command."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from millstream.lake.durable import write_durably

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.lake.home import Home


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the table of a query is not up to date, as of the last run."""

    state: str
    """`failed`, `restarting`, or `stale`: something that it reads has failed."""
    code: str
    what: str
    fix: str
    file: str | None = None
    line: int | None = None


def read_troubles(home: Home) -> dict[str, Trouble]:
    """Read which queries failed, by their names."""
    try:
        found = json.loads(home.troubles.read_text())
    except FileNotFoundError:
        return {}
    return {name: Trouble(**trouble) for name, trouble in found.items()}


def record_troubles(home: Home, queries: Iterable[str], troubles: Mapping[str, Trouble]) -> None:
    """Replace what is known of these queries; nothing is written where nothing changes."""
    known = read_troubles(home)
    others = {name: trouble for name, trouble in known.items() if name not in set(queries)}
    if (now := {**others, **troubles}) != known:
        text = json.dumps({name: asdict(trouble) for name, trouble in now.items()}, indent=2)
        write_durably(home.troubles, text + "\n")
