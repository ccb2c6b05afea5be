"""Sinks of the user's own: a function that is handed each batch, or each part of one."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.serve.fence import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Store


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch of rows that a function gets: one whose id it had before can be skipped."""

    id: str
    """The same whenever these rows are handed over again, and unique to them."""
    number: int
    mode: str
    """append, update or complete."""
    part: int = 0
    """Of a batch that is handed over in parts, which."""


@dataclass(frozen=True, slots=True)
class FunctionSink:
    """A function that each batch is handed to, at least once and always under the same id."""

    function: Callable[..., None] = field(compare=False)
    name: str
    """The last batch that was handed over is recorded under this name, beside the checkpoint."""
    connect: Callable[[], Any] | None = field(default=None, compare=False)
    """Opens a connection; with it, the function is handed parts, each with a connection."""
    parallel: int = 1
    """How many parts, and connections, there are at a time."""

    @property
    def key(self) -> Sequence[str]:
        """None: the function decides what identifies a row."""
        return ()

    @property
    def newest_by(self) -> str | None:
        """None."""
        return None

    @property
    def delete_when(self) -> str | None:
        """None."""
        return None

    @property
    def evolve(self) -> bool:
        """A function gets whatever columns there are."""
        return True

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """Repeated if the driver dies while the function runs, or before that is recorded."""
        return "at least once, under one batch id"

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:  # noqa: ARG002
        """A function that cannot be called with these arguments, and options out of range."""
        store = f"function {self.name!r}"
        if type(self.parallel) is not int or self.parallel < 1:
            why = f"parallel={self.parallel!r} is no number of parts at a time"
            use = "give a whole number from 1 on, such as parallel=4"
            yield fault("STORE_MODE", at=at, serve=serve, store=store, why=why, use=use)
        if "/" in self.name or "\0" in self.name or self.name in (".", ".."):
            why = "a file of the home is named as it is, and no file can have this name"
            use = "give it another name=, of letters and digits"
            yield fault("STORE_MODE", at=at, serve=serve, store=store, why=why, use=use)
        handed = ("rows", "batch") if self.connect is None else ("connection", "rows", "batch")
        try:
            inspect.signature(self.function).bind(*handed)
        except (TypeError, ValueError) as error:
            yield fault(
                "SINK_FUNCTION",
                at=at,
                serve=serve,
                name=self.name,
                why=str(error),
                count=len(handed),
                handed=", ".join(handed),
            )

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Do nothing: what the function connects to is not known."""

    def open(self, shape: Shape, driver: Driver) -> Store:
        """Look up which batch was handed over last."""
        from millstream.systems.custom.sink import FunctionStore

        return FunctionStore(self, shape, driver)

    def place(self, dataset: str) -> Place:
        """Name the function, as errors do."""
        note = f"sinks/{dataset}/{self.name}.json"
        return Place(f"function {self.name!r} of {dataset!r}", f"`rm {note}` in the home")


def sink(function: Callable[[pa.Table, Batch], None], *, name: str = "") -> FunctionSink:
    """Serve an answer to a function: it is called with the rows of each batch and with its id.

    Rows come at least once. If the function takes no id twice, or writes rows and id in one
    transaction, they come exactly once.

    >>> sink(print).name
    'print'
    """
    return FunctionSink(function, name or _name_of(function))


def partition_sink(
    function: Callable[[Any, pa.Table, Batch], None],
    *,
    connect: Callable[[], Any],
    parallel: int = 4,
    name: str = "",
) -> FunctionSink:
    """Serve an answer to a function in parts, several at a time, each with a connection.

    As many connections are opened as parts are handed over at a time, once; they are used again
    for every batch. A part that is handed over again is the same rows under the same id.
    """
    return FunctionSink(function, name or _name_of(function), connect, parallel)


def _name_of(function: Callable[..., Any]) -> str:
    name = str(getattr(function, "__name__", type(function).__name__))
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_") or "function"
