"""How a connector's records become typed rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from millstream.model.record import PLAIN, RecordOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.avro import AvroSchemas


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How CSV is cut into records and cells, by RFC 4180."""

    sep: str = ","
    quote: str = '"'
    """Around a field that contains a separator, quote or newline; if empty, nothing is quoted."""
    escape: str | None = None
    header: bool = False
    null_value: str | Sequence[str] = ""
    """What stands for null, beside an empty field: one text, or several."""
    decimal: str = "."
    """What is before the decimals of a number."""
    thousands: str = ""
    """What may be between groups of three digits of a number."""
    multiline: bool = False
    """Whether a quoted field may contain newlines. Each file is then read by one task."""

    @property
    def null_values(self) -> tuple[str, ...]:
        """What stands for null."""
        one = isinstance(self.null_value, str)
        return (str(self.null_value),) if one else tuple(self.null_value)

    @property
    def reads_whole_files(self) -> bool:
        """Whether a line is understood only with those before it in its file."""
        return self.header or self.multiline


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """The Avro schemas of records; each is the path of a file, or the text of one.

    Give `writer` if all records are written by one schema and have no header. Give `writers` if
    they begin with a byte 0 and the id of their schema in four bytes, as Confluent's clients do.
    """

    writer: str = ""
    writers: Mapping[str, str] = field(default_factory=dict)
    """By id."""
    reader: str = ""
    """What records are read as, by Avro's rules: it has the defaults of what they lack."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How a connector's records become typed rows."""

    format: Literal["json", "csv", "text", "logfmt", "avro", "rows"]
    """`rows` are typed already; the others arrive as one `value` to decode."""
    csv: CsvOptions | None = None
    avro: AvroSchemas | None = None
    number_lines: bool = False
    """Whether the position of a record is its line, to be counted while decoding."""
    record: RecordOptions = PLAIN
