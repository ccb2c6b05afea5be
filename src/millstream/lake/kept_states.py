"""What the functions and operators of each query keep for their keys, as the home describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.lake.durable import write_durably
from millstream.model.state import read, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.lake.home import Home
    from millstream.model.state import Kept


def read_states(home: Home, query: str) -> tuple[Kept, ...] | None:
    """Return what a query keeps; None if nothing is described."""
    file = home.states(query)
    return read(file.read_text()) if file.exists() else None


def write_states(home: Home, query: str, states: tuple[Kept, ...]) -> None:
    """Describe what a query keeps from now on."""
    file = home.states(query)
    if not states:
        file.unlink(missing_ok=True)
    elif read_states(home, query) != states:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(file, written(states))


def described_states(home: Home) -> Iterator[tuple[str, Kept]]:
    """Return all that is kept, each with the name of its query."""
    for file in sorted(home.states("").parent.glob("*.json")):
        for state in read(file.read_text()):
            yield file.stem, state
