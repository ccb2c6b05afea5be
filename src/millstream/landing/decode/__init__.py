"""How raw records become typed columns: each is right, or malformed with a reason to act on."""

from millstream.landing.decode.csv_record import NO_RECORD
from millstream.landing.decode.stream import Format, decoded_schema, decoder

__all__ = ["NO_RECORD", "Format", "decoded_schema", "decoder"]
