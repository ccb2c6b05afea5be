"""Made-up records, the same for the same seed: on time, late, twice, malformed or in the future."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.model.codec import Codec
from millstream.model.data_type import Array, Atom, Decimal, Field, Map, Struct
from millstream.model.schema import Schema
from millstream.systems.rate.source import begin_earlier, counted, counter, head_start_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError
    from millstream.model.data_type import Type

_SHARES = ("late", "duplicate", "malformed", "future")


@dataclass(frozen=True, slots=True)
class Generator:
    """JSON records at a steady rate, made by a seeded function or by the types of the schema.

    The event time is the moment a record is due, moved back if late and forward if in the future.
    Record number n is the same whenever it is made, so a retried batch has the same records.
    """

    schema: str | StructType
    rate: int = 100
    """Records a second."""
    seed: int = 0
    event_time: str | None = None
    """The column to fill with the moment a record is due."""
    make: Callable[[random.Random, int], Mapping[str, Any]] | None = field(
        default=None, compare=False, repr=False
    )
    """Gives the other columns; by default they are made up by type."""
    late: float = 0.0
    late_by: timedelta = timedelta(hours=1)
    duplicate: float = 0.0
    malformed: float = 0.0
    future: float = 0.0
    future_by: timedelta = timedelta(days=365)
    head_start: timedelta = timedelta(seconds=10)
    """How long before the first run the first record was due; unused if the source is live."""

    @property
    def codec(self) -> Codec:
        """Records travel as JSON."""
        return Codec("json")

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A rate that is not positive, or shares that are none."""
        if self.rate < 1:
            yield fault(
                "SHARE_REFUSED",
                at=at,
                source=source,
                option="rate",
                value=self.rate,
                expected="1 or more",
            )
        for option in _SHARES:
            share = getattr(self, option)
            if not 0 <= share <= 1:
                yield fault(
                    "SHARE_REFUSED",
                    at=at,
                    source=source,
                    option=option,
                    value=share,
                    expected="a share from 0 to 1",
                )
        yield from head_start_faults(self.head_start, source, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Always within reach."""

    def begin(self, checkpoint: Path) -> None:
        """Let the first records be due already."""
        begin_earlier(checkpoint, self.head_start)

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the made-up records as a stream."""
        return self._records(counter(spark, self.rate))

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:
        """Make the first records, as if begun so long ago."""
        return self._records(counted(spark, self.rate, rows))

    def _records(self, ticks: DataFrame) -> DataFrame:
        schema = "value STRING, _origin STRING, _position BIGINT"
        ticks = ticks.select("value", "timestamp", "_origin", "_position")
        return ticks.mapInArrow(_writer(self, Schema.parse(self.schema)), schema)

    def record(self, number: int, due: datetime, schema: Schema) -> str:
        """Make record `number`, or the one before it again."""
        dice = random.Random(f"{self.seed}:{number}")
        if dice.random() < self.duplicate and number > 0:
            due -= self._due_after(number) - self._due_after(number - 1)
            number -= 1
            dice = random.Random(f"{self.seed}:{number}")
            dice.random()
        roll = dice.random()
        fields = dict(self.make(dice, number)) if self.make else made_up(schema, dice, number)
        if self.event_time:
            if roll < self.late:
                due -= self.late_by
            elif roll < self.late + self.future:
                due += self.future_by
            fields[self.event_time] = due
        text = json.dumps(fields, default=str)
        broken = self.late + self.future <= roll < self.late + self.future + self.malformed
        return text[: len(text) // 2] if broken else text

    def _due_after(self, number: int) -> timedelta:
        # As Spark's rate source rounds: a record that comes twice has one event time.
        return timedelta(milliseconds=math.floor(number * 1000 / self.rate + 0.5))


def made_up(schema: Schema, dice: random.Random, number: int) -> dict[str, Any]:
    """Fill the columns of a schema by their types."""
    return {column.name: _value(column.type, column, dice, number) for column in schema.fields}


def _value(kind: Type, column: Field, dice: random.Random, number: int) -> Any:
    match kind:
        case Array(element=element):
            return [_value(element, column, dice, number) for _ in range(dice.randrange(4))]
        case Map(value=value):
            return {key: _value(value, column, dice, number) for key in ("a", "b")}
        case Struct(fields=fields):
            return {f.name: _value(f.type, f, dice, number) for f in fields}
        case Decimal():
            return str(dice.randrange(10 ** min(kind.precision - kind.scale, 4)))
    make = _ATOMS.get(kind)
    return make(dice, number) if make else f"{column.name}-{dice.randrange(20)}"


_ATOMS: dict[Atom, Callable[[random.Random, int], Any]] = {
    Atom.BOOLEAN: lambda dice, _: dice.random() < 0.5,
    Atom.TINYINT: lambda dice, _: dice.randrange(100),
    Atom.SMALLINT: lambda dice, _: dice.randrange(100),
    Atom.INT: lambda dice, _: dice.randrange(100),
    Atom.BIGINT: lambda _, number: number,
    Atom.FLOAT: lambda dice, _: round(dice.uniform(0, 100), 3),
    Atom.DOUBLE: lambda dice, _: round(dice.uniform(0, 100), 3),
    Atom.DATE: lambda dice, _: f"2026-01-{dice.randrange(1, 29):02d}",
    Atom.TIMESTAMP: lambda dice, _: f"2026-01-01T{dice.randrange(24):02d}:00:00",
    Atom.TIMESTAMP_NTZ: lambda dice, _: f"2026-01-01T{dice.randrange(24):02d}:00:00",
    Atom.BINARY: lambda _dice, _: "AAAA",
}


def _writer(
    generator: Generator, schema: Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ticks = zip(*(batch.column(n).to_pylist() for n in ("value", "timestamp")), strict=True)
            records = [generator.record(number, due, schema) for number, due in ticks]
            kept = [batch.column("_origin"), batch.column("_position")]
            yield pa.RecordBatch.from_arrays(
                [pa.array(records, pa.string()), *kept], ["value", "_origin", "_position"]
            )

    return write
