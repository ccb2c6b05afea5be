"""How raw records become typed columns: each is right, or malformed with a reason to act on."""

from millstream.landing.decode.line import BLANK, NO_RECORD
from millstream.landing.decode.logfmt_reader import logfmt_pairs
from millstream.landing.decode.parse_reader import function_of
from millstream.landing.decode.partition import BENT, decoded_names, decoded_schema
from millstream.landing.decode.pattern_reader import pattern_fault
from millstream.landing.decode.stream import Format, decoder
from millstream.landing.decode.time_column import read_times

__all__ = [
    "BENT",
    "BLANK",
    "NO_RECORD",
    "Format",
    "decoded_names",
    "decoded_schema",
    "decoder",
    "function_of",
    "logfmt_pairs",
    "pattern_fault",
    "read_times",
]
