"""What operators inside a user's function ask of the code that calls it, and note for it.

The one context variable of Millstream: the user's own function stands between the two.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from pyspark.sql import DataFrame

    from millstream.errors import MillstreamError
    from millstream.model.dataset import Model
    from millstream.model.state import Kept
    from millstream.operators.reference import Reference

    MakeWarning = Callable[[str], MillstreamError]
    """Makes a warning about the dataset of this name."""


class References(Protocol):
    """Decides which version of its reference rows a query reads."""

    def bind(self, name: str, reference: Reference) -> DataFrame:
        """Return the rows of the version that is to be read; the name is that of this call."""
        ...


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How an answer is built."""

    aside: Path | None = None
    """The folder for rows that a function of a key raises on; None leaves them out."""
    stops_if_raised: bool = False
    """Whether such a row stops the query: it has no quarantine to put the row into."""
    complete_us: float = math.inf
    """Up to which event time a batch has all rows: to their end, or to a stream's watermark."""
    references: References | None = None
    """None: reference rows are read as they are."""
    tables: Path | None = None
    """The folder of the tables of the home; None if nothing is stored."""
    models: Path | None = None
    """The folder that says to which versions models were rolled back; None if none ever was."""
    reached_us: Callable[[], int] | None = None
    """The event time that the batches of a stream have reached, before the next one."""
    kept: tuple[Kept, ...] | None = None
    """What the checkpoint of a stream holds; None if it has not run."""


@dataclass(frozen=True, slots=True)
class Hold:
    """How long an operator keeps a row beyond the watermark before it emits the result."""

    longest: timedelta
    """No emitted row is older than this before the watermark."""
    keeps_times: bool = True
    """Whether times in its rows are those of its events; a user's function may return any."""


@dataclass(frozen=True, slots=True)
class BuildNotes:
    """What operators note while an answer is built, in the order of their calls."""

    states: list[Kept] = field(default_factory=list)
    """What functions of keys and operators keep."""
    raising: list[str] = field(default_factory=list)
    """Functions whose rows are quarantined if they raise."""
    holds: list[Hold] = field(default_factory=list)
    references: dict[str, Reference] = field(default_factory=dict)
    """Reference data, by a name that an edit of the function does not change."""
    behind_us: list[int] = field(default_factory=list)
    """By how much the rows of operators are older than `complete_us`."""
    forever: list[MakeWarning] = field(default_factory=list)
    """Warnings about state that is never forgotten."""
    completing: list[Callable[[DataFrame], DataFrame]] = field(default_factory=list)
    """What completes the rows of each batch of a stream: a model that learns slices of them."""


@dataclass(frozen=True, slots=True)
class BuildContext:
    """One call of a user's function."""

    inputs: Sequence[DataFrame] = ()
    """What the function is called with."""
    options: BuildOptions = field(default_factory=BuildOptions)
    notes: BuildNotes = field(default_factory=BuildNotes)
    models: Mapping[str, tuple[Model, DataFrame]] = field(default_factory=dict)
    """The models among what it reads, with their tables."""

    def note_raising(self, function: str) -> str | None:
        """Note a function that may raise; return the folder for rows that it raises on, if any."""
        self.notes.raising.append(function)
        return f"{self.options.aside}/{len(self.notes.raising)}" if self.options.aside else None

    def bound_rows(self, reference: Reference) -> DataFrame | None:
        """Note reference data; return the rows of the version to be read, if one is bound."""
        # Equal ones are told apart by a number.
        names = (f"{reference.name} ({number})" for number in count(1))
        name = next(name for name in names if name not in self.notes.references)
        self.notes.references[name] = reference
        bound = self.options.references
        return None if bound is None else bound.bind(name, reference)


_CONTEXT: ContextVar[BuildContext | None] = ContextVar("build_context", default=None)


def build_context() -> BuildContext | None:
    """Return the context; None if the user calls the function: in a notebook, or in a test."""
    return _CONTEXT.get()


def notes() -> BuildNotes:
    """Return where operators add notes; without a context, the notes are discarded."""
    context = _CONTEXT.get()
    return context.notes if context else BuildNotes()


def continues_without(call: str) -> bool:
    """Return whether a stream goes on from a checkpoint that has nothing of an operator.

    It was written by a version in which the operator had another state, which Spark alone knows.
    """
    context = _CONTEXT.get()
    kept = context.options.kept if context else None
    return kept is not None and all(one.name != call for one in kept)


def complete_us() -> float:
    """Return up to which event time a batch that is built now has all rows, in microseconds."""
    context = _CONTEXT.get()
    return context.options.complete_us if context else math.inf


@contextmanager
def calling(context: BuildContext) -> Iterator[None]:
    """Set the context for the length of a call."""
    token = _CONTEXT.set(context)
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def of_watermark(watermark_ms: int) -> float:
    """Return up to which event time rows are complete at a watermark; at 0 there is none yet."""
    return watermark_ms * 1000 if watermark_ms > 0 else -math.inf
