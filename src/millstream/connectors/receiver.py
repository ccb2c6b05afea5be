"""A function of the user's that receives records, whatever from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from millstream.connectors.inbox import read_inbox
from millstream.errors import FormatRefusedError
from millstream.model.dataset import Codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.inbox import Inbox
    from millstream.errors import Location, MillstreamError

FORMATS = ("json", "csv", "text")


@dataclass(frozen=True, slots=True)
class Receiver:
    """Records that a function hands over, such as from a device or a protocol of your own.

    The function is called in a thread of the driver, and again whenever it raises, until the app
    stops. `inbox.put(record)` returns when the record is landed: acknowledge it then to whoever
    sent it, and nothing can be lost. `inbox.offer(record)` does not wait.
    """

    receive: Callable[[Inbox], None] = field(compare=False, repr=False)
    format: str = "json"
    schema: str | StructType = "value STRING"

    @property
    def codec(self) -> Codec:
        """A record is a line."""
        return line_codec(self.format)

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A format that does not exist."""
        return format_faults(self.format, source, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Nothing to try: the function is called when the app runs."""

    def read(self, spark: SparkSession, place: Path) -> DataFrame:
        """Open what was received as a stream."""
        return read_inbox(spark, place)


def line_codec(name: str) -> Codec:
    """Lines are decoded, and counted within their file."""
    return Codec(cast("Literal['json', 'csv', 'text']", name), number_lines=True)


def format_faults(name: str, source: str, at: Location) -> Iterator[MillstreamError]:
    """A format in which records cannot be received."""
    if name not in FORMATS:
        yield FormatRefusedError(name, source=source, allowed=FORMATS, at=at)
