"""Rows that a function of a key raised on: where they are put, and who is told of it.

A task writes them to a file of its own, under a name that is the same for every retry. The files
belong to nothing until whoever runs the batch commits them together with it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.model.state import RAISED, ROW, KeptState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.model.state import Kept, KeptOperator

_RULES = "_rules"
_FILE = pa.schema(
    [(_RULES, pa.list_(pa.string())), (ROW, pa.string()), (RAISED, pa.string())]
)  # as a quarantine has them


class Raised(NamedTuple):
    """A row, or the call for a timer, that a function raised on."""

    function: str
    row: str
    traceback: str


@dataclass
class Surroundings:
    """Who calls functions of keys, and what it does with rows that they raise on."""

    folder: str | None
    """Where they are put; None if nowhere."""
    raises: bool = False
    """Whether it stops at the first one."""
    states: list[Kept] = field(default_factory=list)
    """What the functions and operators that were called keep, in this order."""

    @property
    def calls_functions(self) -> bool:
        """Whether there are functions of keys, which may raise."""
        return any(isinstance(state, KeptState) for state in self.states)

    def enter(self, state: KeptState) -> str | None:
        """Take note of a function that is called; give the folder for its rows, if any."""
        self.states.append(state)
        return f"{self.folder}/{len(self.states)}" if self.folder else None


_AROUND: ContextVar[Surroundings | None] = ContextVar("around", default=None)


def note(operator: KeptOperator) -> None:
    """Take note of an operator that keeps state, if anybody asks."""
    if surroundings := _AROUND.get():
        surroundings.states.append(operator)


def around() -> Surroundings | None:
    """Give the surroundings; None if nobody has said anything: in a notebook, or in a test."""
    return _AROUND.get()


@contextmanager
def setting_aside(folder: Path | None) -> Iterator[Surroundings]:
    """Put rows that functions raise on into files of a folder; leave them out if it is None."""
    with _within(Surroundings(str(folder) if folder else None)) as surroundings:
        yield surroundings


@contextmanager
def stopping() -> Iterator[Surroundings]:
    """Stop at the first row that a function raises on, for want of a quarantine."""
    with _within(Surroundings(None, raises=True)) as surroundings:
        yield surroundings


@contextmanager
def _within(surroundings: Surroundings) -> Iterator[Surroundings]:
    token = _AROUND.set(surroundings)
    try:
        yield surroundings
    finally:
        _AROUND.reset(token)


def put(folder: str, name: str, rows: Sequence[Raised]) -> None:
    """Write rows to the file of this name, in place of what an earlier attempt has written."""
    columns: list[list[Any]] = [
        [[f"{row.function} raises nothing"] for row in rows],
        [row.row for row in rows],
        [row.traceback for row in rows],
    ]
    table = pa.Table.from_pydict(dict(zip(_FILE.names, columns, strict=True)), schema=_FILE)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    temporary = place / f".{name}.{os.getpid()}"
    pq.write_table(table, temporary, compression="zstd")
    temporary.replace(place / f"{name}.parquet")
