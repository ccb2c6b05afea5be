"""The declarations of an app, in order, and what was wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from millstream.declare.notebook import Execution
    from millstream.model.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration."""

    name: str
    dataset: Dataset | None
    """None if it was refused."""
    faults: tuple[MillstreamError, ...] = ()
    execution: Execution | None = None
    """The execution of a notebook's cell that made it."""

    @staticmethod
    def of(name: str, make: Callable[[], Dataset], execution: Execution | None) -> Declaration:
        """Make a declaration, or record why it is refused."""
        try:
            return Declaration(name, make(), (), execution)
        except MillstreamError as error:
            return Declaration(name, None, (error,), execution)


class Register:
    """All declarations of an app.

    In a file, a name that comes twice is a fault. In a notebook it is a change of mind: what a
    cell declares takes the place of what an earlier execution declared by that name, or what an
    earlier execution of the same cell declared by any.
    """

    def __init__(self) -> None:
        self._entries: list[Declaration] = []

    def enter(self, entry: Declaration) -> None:
        """Add a declaration, in the place of the one that it replaces."""
        named = (n for n, held in enumerate(self._entries) if held.name == entry.name)
        place = next((n for n in named if _replaces(entry, self._entries[n])), len(self._entries))
        before, after = self._entries[:place], self._entries[place:]
        self._entries = [*_without(entry, before), entry, *_without(entry, after)]

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """What was declared, in order."""
        return tuple(entry.dataset for entry in self._entries if entry.dataset is not None)

    @property
    def faults(self) -> tuple[MillstreamError, ...]:
        """Why declarations were refused."""
        return tuple(fault for entry in self._entries for fault in entry.faults)

    @property
    def refused(self) -> frozenset[str]:
        """Names whose declarations were refused, and that no other declares."""
        made = {dataset.name for dataset in self.datasets}
        return frozenset(entry.name for entry in self._entries) - made

    def faults_of(self, name: str) -> tuple[MillstreamError, ...]:
        """Why the declarations of a name were refused."""
        return tuple(f for entry in self._entries if entry.name == name for f in entry.faults)


def _without(entry: Declaration, entries: Iterable[Declaration]) -> Iterable[Declaration]:
    return (held for held in entries if not _replaces(entry, held))


def _replaces(entry: Declaration, held: Declaration) -> bool:
    new, old = entry.execution, held.execution
    if new is None or (old is not None and old.number == new.number):
        return False
    same_cell = old is not None and new.cell is not None and old.cell == new.cell
    return same_cell or held.name == entry.name
