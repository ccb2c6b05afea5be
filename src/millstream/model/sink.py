"""Protocols of the places that answers go to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from millstream.errors import Location, MillstreamError
    from millstream.model.spark_types import DataFrame, DataStreamWriter, SparkSession
    from millstream.model.trigger import Trigger


@runtime_checkable
class Sink(Protocol):
    """A place an answer goes to."""

    def guarantee(self, trigger: Trigger) -> str:
        """Return how often a row arrives, as `check` and `graph` show it."""
        ...

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Raise if the outside system cannot be written to right now."""
        ...


@runtime_checkable
class DemandingSink(Protocol):
    """A sink that needs certain columns."""

    def columns(self) -> tuple[str, ...]:
        """List the columns that an answer must have."""
        ...


@runtime_checkable
class TypedSink(Protocol):
    """A sink that can take some columns only as certain types."""

    def types(self) -> Mapping[str, tuple[str, ...]]:
        """List the types that a column may have, in Spark's words, if the answer has it."""
        ...


@runtime_checkable
class NamingSink(Protocol):
    """A sink that cannot hold columns of every name."""

    def name_fault(self, column: str) -> str | None:
        """Return why it cannot hold a column of this name; None if it can."""
        ...


@runtime_checkable
class SparkSink(Sink, Protocol):
    """A sink that Spark itself writes to, without a fence: what is retried arrives again."""

    def sink_faults(self, serve: str, at: Location) -> Iterator[MillstreamError]:
        """Find what is wrong with the settings, without Spark and without the network."""
        ...

    def columns(self) -> tuple[str, ...]:
        """List the columns that an answer must have."""
        ...

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """Return Spark's writer for a stream."""
        ...


@runtime_checkable
class ShownSink(Sink, Protocol):
    """A sink that can show the rows of a batch beside the stores that have it."""

    def show(self, batch: int, parts: Iterable[Any]) -> None:
        """Show some rows of Arrow tables."""
        ...


@runtime_checkable
class StoreSink(Sink, Protocol):
    """A sink that keeps a fence beside its rows, so that each batch is written once."""

    @property
    def key(self) -> Sequence[str]:
        """The columns that identify a row."""
        ...

    @property
    def newest_by(self) -> str | None:
        """The column that says which of two rows with one key is kept."""
        ...

    @property
    def delete_when(self) -> str | None:
        """The condition on rows that delete the one with their key."""
        ...

    @property
    def evolve(self) -> bool:
        """Whether columns may be added to what is there."""
        ...

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:
        """Find what the store cannot do, without asking it."""
        ...


@runtime_checkable
class LogSink(Protocol):
    """A store that keeps whatever is added: two rows with one key are no contradiction."""

    @property
    def keeps_every_row(self) -> bool:
        """Whether it does."""
        ...


@runtime_checkable
class BatchedSink(Sink, Protocol):
    """A sink that is a store where there are batches, and written by Spark itself where not."""

    def in_batches(self) -> StoreSink:
        """Return the store."""
        ...


@runtime_checkable
class NamedSink(Protocol):
    """A sink whose fence is kept in the home, under its name."""

    @property
    def name(self) -> str:
        """Its name."""
        ...
