"""Errors of sources, as they are met."""

from __future__ import annotations

from millstream.errors import (
    AvroColumnError,
    AvroSchemaError,
    DeltaMissingError,
    EventTimeColumnError,
    LiveInBatchError,
    LiveReceiverError,
    Location,
    NotSampledError,
    PathMissingError,
    SchemaError,
    SourceParametersError,
    WatermarkMissingError,
)

AT = Location("app.py", 6)
SAMPLES = (
    SourceParametersError("orders", parameters=["folder"], at=AT),
    SchemaError(
        "unknown type 'BIGNT'",
        fix="did you mean 'BIGINT'? types are STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, "
        "FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY, DECIMAL(p,s), ARRAY, MAP, STRUCT",
        text="id BIGNT, at TIMESTAMP",
        offset=3,
    ).located(AT),
    SchemaError(
        "column '_id' starts with '_'", fix="rename it: such names are kept for landing's own"
    ).located(AT),
    WatermarkMissingError("orders", has="an event_time", lacks="watermark", at=AT),
    WatermarkMissingError("orders", has="a watermark", lacks="event_time", at=AT),
    EventTimeColumnError("att", source="orders", got=None, columns=["id", "at"], at=AT),
    EventTimeColumnError("id", source="orders", got="BIGINT", columns=["id", "at"], at=AT),
    PathMissingError("data/orders", source="orders", at=AT),
    LiveInBatchError("orders", at=AT),
    LiveReceiverError("orders", connector="Http", at=AT),
    DeltaMissingError("data/orders", source="orders", at=AT),
    AvroSchemaError(
        "names 'orders.avsc', which cannot be read: No such file or directory",
        option="avro.writer",
        source="orders",
        at=AT,
    ),
    AvroColumnError(
        "id",
        source="orders",
        schema="avro.writer",
        why="it is string, which cannot be BIGINT",
        can_default=False,
        at=Location("app.py", 7),
    ),
    AvroColumnError(
        "price",
        source="orders",
        schema="v1.avsc",
        why="record Order has no such field",
        can_default=True,
        at=AT,
    ),
    NotSampledError("orders", connector="Http", at=AT),
)
