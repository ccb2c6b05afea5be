"""What a checkpoint holds of keys, read into rows: a key, its state, its timers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from millstream.model.data_type import Array, Atom, Field, Map
from millstream.model.schema import Schema
from millstream.operators.state.codec import JSON, MEMORY
from millstream.operators.state.parts import HEAD, HEAD_AT, KEYS
from millstream.operators.state.python_types import state_of, to_json_value
from millstream.operators.state.timer import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from millstream.model.state import KeptState

_TIMERS, _WAITING = "_timers", "_waiting"
_ENTRIES = StructType().add("key", "string").add("is_recent", "boolean").add("text", "string")


def decoded(parts: DataFrame, kept: KeptState) -> DataFrame:
    """Read the entries of buckets, place and content, as rows of one key each."""
    columns = (
        *kept.key.fields,
        *kept.state.fields,
        Field(_TIMERS, Map(Atom.TIMESTAMP)),
        Field(_WAITING, Atom.BIGINT),
    )
    entries = parts.mapInArrow(_Decoder(kept), _ENTRIES)
    newest = entries.groupBy("key").agg(F.max_by("text", "is_recent").alias("text"))
    texts = newest.where("text IS NOT NULL")
    schema = Schema(columns).to_ddl()
    return texts.select(F.from_json("text", schema, JSON).alias("row")).select("row.*")


@dataclass(frozen=True)
class _Decoder:
    kept: KeptState

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            entries = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            rows = [row for place, packed in entries for row in texts_of(place, packed, self.kept)]
            yield pa.RecordBatch.from_pylist(
                [dict(zip(_ENTRIES.names, row, strict=True)) for row in rows],
                schema=to_arrow_schema(_ENTRIES),
            )


def texts_of(place: int, packed: bytes, kept: KeptState) -> Iterator[tuple[str, bool, str | None]]:
    """Read an entry of a bucket: a key, whether this is its latest change, and its row as JSON."""
    states = msgspec.msgpack.Decoder(state_of(kept.state))
    encoder = msgspec.json.Encoder(decimal_format="number")
    is_recent = place == HEAD_AT
    parts = HEAD.decode(packed).recent.values() if is_recent else [KEYS.decode(packed)]
    for key, memory in (entry for part in parts for entry in part.memories.items()):
        if memory is None:
            yield key, is_recent, None
            continue
        state, timers, pending = MEMORY.decode(memory)
        row: dict[str, Any] = msgspec.json.decode(key)
        found = states.decode(state) if state else None
        for field in kept.state.fields:
            value = getattr(found, field.name, None)
            is_empty = isinstance(field.type, Array | Map) and not value
            row[field.name] = None if is_empty else to_json_value(value, field.type)
        # The timer without a name is that of `ttl`.
        row[_TIMERS] = {name or "ttl": moment(us) for name, us in timers.items()}
        row[_WAITING] = len(pending)
        yield key, is_recent, encoder.encode(row).decode()
