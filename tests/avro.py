"""Avro records as another library writes them, and as Millstream reads them."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa

from millstream.landing.decode import decoder
from millstream.model.avro import AvroSchemas, parse_avro
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

UUID_TEXT = {"type": "string", "logicalType": "uuid"}


def record(*fields: tuple[str, Any], name: str = "Row") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def written(schema: Any, *rows: Any) -> list[bytes]:
    parsed, raws = fastavro.parse_schema(schema), []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        raws.append(out.getvalue())
    return raws


def schemas(*writers: Any, reader: Any = None, first_id: int | None = None) -> AvroSchemas:
    parsed = [parse_avro(json.dumps(writer)) for writer in writers]
    ids = [None if first_id is None else first_id + n for n in range(len(parsed))]
    wanted = None if reader is None else parse_avro(json.dumps(reader))
    return AvroSchemas(tuple(zip(ids, parsed, strict=True)), wanted)


def decode(
    columns: str | Schema, given: AvroSchemas, raws: Iterable[bytes | None]
) -> list[dict[str, Any]]:
    values = list(raws)
    batch = pa.RecordBatch.from_pydict(
        {
            "value": pa.array(values, pa.binary()),
            "_origin": pa.array(["topic/0"] * len(values), pa.string()),
            "_position": pa.array(range(len(values)), pa.int64()),
        }
    )
    run = decoder(Schema.parse(columns), format="avro", options=given)
    return [row for out in run(iter([batch])) for row in out.to_pylist(maps_as_pydicts="strict")]


def long(name: str) -> dict[str, str]:
    return {"type": "long", "logicalType": name}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}
