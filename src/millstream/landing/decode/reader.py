"""The protocol of record readers, and the reader of plain text."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from millstream.landing.decode.column import text_leaf
from millstream.model.data_type import Atom
from millstream.model.ddl import schema_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.landing.decode.column import Build
    from millstream.model.data_type import Decimal
    from millstream.model.schema import Schema

REFUSALS = (msgspec.DecodeError, ValueError, TypeError, ArithmeticError, RecursionError)
"""What reading a record raises when it is malformed; anything else is a fault of ours."""


class MalformedError(ValueError):
    """A record that is not as its schema says; its text is the reason."""


class RecordReader(Protocol):
    """Reads the records of one format; a row is opaque to all but its own reader."""

    @property
    def is_text(self) -> bool:
        """Whether records are UTF-8, and empty without a character to be seen."""

    @property
    def blank(self) -> Any:
        """The row that is null in all columns."""

    @property
    def getters(self) -> Sequence[Callable[[Any], Any]]:
        """One function per column: its value in a row."""

    @property
    def read(self) -> Callable[[bytes], Any]:
        """Read one record, or raise one of `REFUSALS`."""

    def leaf(self, kind: Atom | Decimal) -> Build:
        """Make the function that turns values of a type without parts into a column."""

    def fault(self, raw: bytes) -> str | None:
        """Return why a record is refused; slow, called for refused records only."""


class TextReader:
    """Reads each record as it is, into the only column."""

    is_text = True
    blank = (None,)
    getters = (itemgetter(0),)
    leaf = staticmethod(text_leaf)

    def __init__(self, schema: Schema, *, lines: bool) -> None:
        """Prepare.

        Args:
            schema: One column.
            lines: Whether records are lines, and blank ones none.
        """
        self._lines = lines
        if [field.type for field in schema.fields] != [Atom.STRING]:
            what = f"text has one STRING column, the schema says {schema.to_ddl()!r}"
            raise schema_fault(what, fix="declare one STRING column, or read JSON or CSV")

    def read(self, raw: bytes) -> tuple[str]:
        """Read one record."""
        if self._lines and (not raw or raw.isspace()):
            raise MalformedError
        return (raw.decode(),)

    def fault(self, _: bytes) -> str | None:
        """Return None: any UTF-8 is text."""
        return None
