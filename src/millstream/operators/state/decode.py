"""What a checkpoint holds of keys, read into rows: a key, its state, its timers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql import functions as F

from millstream.model.schema import Array, Atom, Field, Map, Schema
from millstream.operators.state.buckets import KEYS
from millstream.operators.state.codec import JSON, MEMORY
from millstream.operators.state.kind import state_of, to_words
from millstream.operators.state.timer import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from millstream.model.state import KeptState

_TIMERS, _WAITING = "_timers", "_waiting"


def decoded(parts: DataFrame, kept: KeptState) -> DataFrame:
    """Read the parts of buckets, one binary column, as rows of one key each."""
    columns = (
        *kept.key.fields,
        *kept.state.fields,
        Field(_TIMERS, Map(Atom.TIMESTAMP)),
        Field(_WAITING, Atom.BIGINT),
    )
    texts = parts.mapInArrow(_Decoder(kept), "text STRING")
    schema = Schema(columns).to_ddl()
    return texts.select(F.from_json("text", schema, JSON).alias("row")).select("row.*")


@dataclass(frozen=True)
class _Decoder:
    kept: KeptState

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            packed: list[Any] = batch.column(0).to_pylist()
            texts = [text for one in packed for text in texts_of(one, self.kept)]
            yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["text"])


def texts_of(packed: bytes, kept: KeptState) -> Iterator[str]:
    """Read the keys of one part of a bucket."""
    states = msgspec.msgpack.Decoder(state_of(kept.state))
    encoder = msgspec.json.Encoder(decimal_format="number")
    for key, (memory, _) in KEYS.decode(packed).items():
        state, timers, pending = MEMORY.decode(memory)
        row: dict[str, Any] = msgspec.json.decode(key)
        found = states.decode(state) if state else None
        for field in kept.state.fields:
            value = getattr(found, field.name, None)
            is_empty = isinstance(field.type, Array | Map) and not value
            row[field.name] = None if is_empty else to_words(value, field.type)
        # The timer without a name is the one that only forgets.
        row[_TIMERS] = {name or "ttl": moment(us) for name, us in timers.items()}
        row[_WAITING] = len(pending)
        yield encoder.encode(row).decode()
