"""How raw records become typed columns: each is right, or malformed with a reason to act on."""

from millstream.lake.decode.stream import HEADER, Format, decoded_schema, decoder

__all__ = ["HEADER", "Format", "decoded_schema", "decoder"]
