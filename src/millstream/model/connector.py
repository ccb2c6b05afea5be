"""Protocols of the places that rows come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from millstream.errors import Location, MillstreamError
    from millstream.model.codec import Codec
    from millstream.model.schema import Schema
    from millstream.model.spark_types import DataFrame, SparkSession


@runtime_checkable
class Connector(Protocol):
    """A place rows come from.

    `read` gives a stream with the columns `_origin` (file, or topic/partition) and `_position`
    (line or offset; null where lines are counted later), and either `value` or the columns of the
    schema, as the codec says. Reading the same offsets again must give the same rows.
    """

    @property
    def schema(self) -> Schema | str | object:
        """The columns of a record, as the user gave them."""
        ...

    @property
    def codec(self) -> Codec:
        """How records become rows."""
        ...

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """Find what is wrong with the settings, without Spark and without the network."""
        ...

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Raise if the outside system cannot be read right now."""
        ...

    def read(self, spark: SparkSession, place: Path) -> DataFrame:
        """Open the stream; `place` is a folder of the home for whatever the connector keeps."""
        ...


@runtime_checkable
class Placed(Protocol):
    """A connector that reads a place of this machine, which must exist before a run."""

    def missing(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """Find what does not exist."""
        ...


@runtime_checkable
class FileReading(Protocol):
    """A connector that reads files: one that cannot be read is set aside, and the others land."""

    def read_files(self, spark: SparkSession, paths: Sequence[str]) -> DataFrame:
        """Read some files of the stream, with the columns of `read`."""
        ...

    def refusal(self, path: str) -> str | None:
        """Return why a file is not read, if its name shows it or its first bytes do."""
        ...

    def unreadable(self, error: BaseException) -> tuple[str, str] | None:
        """Return the file at which reading failed, and why; None if it failed otherwise."""
        ...


@runtime_checkable
class Receiving(Protocol):
    """A connector whose records cannot be read again: it passes them on as they arrive."""

    def receive(self, inbox: Any) -> None:
        """Hand records over to an inbox until that is closed."""
        ...


@runtime_checkable
class RowWise(Protocol):
    """A connector or sink whose rows can be taken one by one, without batches."""

    row_wise: ClassVar[tuple[str, ...]]
    """The triggers without batches that it can be read or written in."""


@runtime_checkable
class BoundedReading(Protocol):
    """A connector that can bound how much a batch reads."""

    bounded_in: ClassVar[Literal["rows", "bytes"]]
    """What the bound counts."""

    def bounded(self, most: int) -> Connector:
        """Return it with a bound; as it is if its own options have one."""
        ...


@runtime_checkable
class TableReading(Protocol):
    """A connector that reads a table of another app, which can be bounded in whole versions."""

    @property
    def folder(self) -> Path:
        """Where the table is."""
        ...

    def read_bounded(self, spark: SparkSession, files: int) -> DataFrame:
        """Open the stream with so many files in its first batch."""
        ...


@runtime_checkable
class Tasks(Protocol):
    """A connector that, without batches, keeps tasks of the cluster busy all the time."""

    def tasks(self, spark: SparkSession) -> int:
        """Return how many."""
        ...


@runtime_checkable
class Beginning(Protocol):
    """A connector that records in a new checkpoint where it begins."""

    def begin(self, checkpoint: Path) -> None:
        """Write it, before the query that lands the source first starts."""
        ...


@runtime_checkable
class Sampled(Protocol):
    """A connector that can show a few records without being opened as a stream."""

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:
        """Return records that are there, with the columns of `read`; at most `rows` are used."""
        ...


@dataclass(frozen=True, slots=True)
class Followed:
    """What is known of a table of another app, at the version a batch has read it to."""

    position: Mapping[str, int]
    """Which version it was, to know it again."""
    frontier: int | None
    """No row to come stems from an event before it, in microseconds since 1970; None if unknown."""
    event_time: str | None
    """The column of the event time."""
    delay: timedelta | None
    """How late a row may be behind the greatest event time, if that is bounded."""


@runtime_checkable
class Registering(Protocol):
    """A connector to a table that is kept for those who have registered as its readers."""

    def register(self, source: str, home: Path, at: Location) -> None:
        """Register a source of the app that is deployed in a home."""
        ...


@runtime_checkable
class Following(Protocol):
    """A connector to a table whose rows come with a frontier."""

    def followed(self) -> Followed | None:
        """Return what is known of the table now; None if it cannot be read."""
        ...

    def followed_to(self, version: int) -> Followed:
        """Return what was known of the table at a version."""
        ...

    def check_position(self, position: Mapping[str, int], source: str, at: Location) -> None:
        """Raise unless the table is still the one that was read to a position."""
        ...
