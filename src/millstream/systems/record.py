"""What sources have in common whose records are JSON, CSV or text, handed over or asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from millstream.errors import closest, fault
from millstream.model.dataset import Codec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.errors import Location, MillstreamError

FORMATS = ("json", "csv", "text")


def format_fault(dataset: str, got: str, allowed: Sequence[str], at: Location) -> MillstreamError:
    """Refuse a format that a connector does not know."""
    return fault(
        "FORMAT_REFUSED",
        at=at,
        dataset=dataset,
        got=got,
        nearest=closest(got, allowed),
        allowed=", ".join(allowed),
    )


class Records:
    """Records that are decoded one by one."""

    __slots__ = ()

    format: str

    @property
    def codec(self) -> Codec:
        """Records are decoded; their position comes with them."""
        return Codec(cast("Literal['json', 'csv', 'text']", self.format))

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A format that does not exist."""
        if self.format not in FORMATS:
            yield format_fault(f"source {source!r}", self.format, FORMATS, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Nothing to try: records come when the app runs."""


class Received(Records):
    """Records that are handed over, a line each, and kept in an inbox until they are landed."""

    __slots__ = ()

    @property
    def codec(self) -> Codec:
        """Lines are decoded, and counted within their file."""
        return Codec(super().codec.format, number_lines=True)

    def read(self, spark: SparkSession, place: Path) -> DataFrame:
        """Open what the inbox has taken, and what it will take, as a stream."""
        from pyspark.sql import functions as F

        place.mkdir(parents=True, exist_ok=True)
        options = {"maxFileAge": "1000000d", "lineSep": "\n"}
        lines = spark.readStream.format("text").options(**options).load(str(place))
        return lines.select(
            "value",
            F.col("_metadata.file_name").alias("_origin"),
            F.lit(None).cast("long").alias("_position"),
        )
