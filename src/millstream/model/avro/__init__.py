"""What an Avro schema says, and how records written by it become declared columns."""

from millstream.model.avro.columns import columns_of
from millstream.model.avro.kind import AvroSchema, AvroSchemas, AvroTextError
from millstream.model.avro.parse import parse_avro
from millstream.model.avro.resolve import AvroColumn, resolve

__all__ = [
    "AvroColumn",
    "AvroSchema",
    "AvroSchemas",
    "AvroTextError",
    "columns_of",
    "parse_avro",
    "resolve",
]
