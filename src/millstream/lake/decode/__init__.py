"""How raw records become typed columns: each is right, or malformed with a reason to act on."""

from millstream.lake.decode.csv_record import NO_RECORD
from millstream.lake.decode.stream import Format, decoded_schema, decoder

__all__ = ["NO_RECORD", "Format", "decoded_schema", "decoder"]
