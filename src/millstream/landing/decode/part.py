"""The records of one batch, read in their order: each becomes a row, or has a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from millstream.landing.decode.column import UnfitError
from millstream.landing.decode.line import BLANK
from millstream.landing.decode.reader import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.landing.decode.column import Build, Column
    from millstream.landing.decode.reader import RecordReader

Faults: TypeAlias = dict[int, str]
"""Reasons, by row of the batch."""
Bend: TypeAlias = "Callable[[RecordReader, bytes], tuple[bytes, tuple[str, ...]]]"
"""Returns a record in which more fits, and the columns that were bent."""


class RecordPart:
    """The rows of a batch so far, and what is wrong with them."""

    def __init__(
        self,
        raws: Sequence[bytes | None],
        reader: RecordReader,
        bend: Bend | None,
        *,
        checked: bool,
        lines: bool,
    ) -> None:
        self.rows: list[Any] = []
        self.faults: Faults = {}
        self.bent: dict[int, str] = {}
        """By row, the columns of which it was bent."""
        self._raws, self._reader, self._bend = raws, reader, bend
        self._checked, self._lines = checked, lines
        self._readers: list[tuple[int, RecordReader]] = []

    @property
    def next(self) -> bytes | None:
        """The first record that is not read yet."""
        return self._raws[len(self.rows)]

    def read(self, stop: int, reader: RecordReader) -> None:
        """Read up to a row."""
        self._readers.append((stop, reader))
        read, keep, checked = reader.read, self.rows.append, self._checked
        raws: Sequence[Any] = self._raws
        for raw in raws if stop - len(self.rows) == len(raws) else raws[len(self.rows) : stop]:
            try:
                if checked:
                    str(raw, "utf-8")
                keep(read(raw))
            except REFUSALS:
                keep(self._read_again(len(self.rows), reader))

    def refuse(self, row: int, reason: str) -> None:
        """Take a row for no right record."""
        self.faults[row], self.rows[row] = reason, self._reader.blank

    def refuse_to(self, stop: int, reason: str) -> None:
        """Take all up to a row for no right records."""
        for row in range(len(self.rows), stop):
            self.rows.append(self._reader.blank)
            self.faults[row] = reason

    def columns(self, builders: Sequence[Build]) -> list[Column]:
        """Make the columns; rows with values that do not fit are refused."""
        columns: list[Column] = []
        unfit: set[int] = set()
        for build, get in zip(builders, self._reader.getters, strict=True):
            try:
                columns.append(build(list(map(get, self.rows))))
            except UnfitError as error:
                unfit.update(error.rows)
        if not unfit:
            return columns
        for i in unfit:
            reader = next(reader for stop, reader in self._readers if i < stop)
            self.rows[i] = self._read_again(i, reader)
        return self.columns(builders)

    def _read_again(self, row: int, reader: RecordReader) -> Any:
        """Read a record that was refused: bent if that makes it fit, else not at all."""
        raw = self._raws[row]
        if self._bend is not None and raw is not None:
            try:
                str(raw, "utf-8")
                raw, bent = self._bend(reader, raw)
                if bent and row not in self.bent:
                    self.bent[row] = ", ".join(bent)
                    return reader.read(raw)
            except REFUSALS:
                pass
        self.bent.pop(row, None)
        self.faults[row] = self._reason(raw, reader)
        return self._reader.blank

    def _reason(self, raw: bytes | None, reader: RecordReader) -> str:
        if raw is None:
            return "null record"
        if not reader.is_text:
            return reader.fault(raw) or "not as the schema says"
        if self._lines and is_blank(raw):
            return BLANK
        return text_fault(raw) or reader.fault(raw) or "not as the schema says"


def is_blank(raw: bytes) -> bool:
    """Return whether a line has no character to be seen."""
    return not raw or raw.isspace()


def text_fault(raw: bytes) -> str | None:
    """Say that a record is empty, or no text."""
    if is_blank(raw):
        return "empty record"
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error.reason} (byte {error.start})"
    return None
