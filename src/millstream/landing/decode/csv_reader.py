"""How lines of CSV are read, each cell strictly by the type of its column."""

from __future__ import annotations

import csv
import io
import json
import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from millstream.landing.decode.cell import cell_reader, cell_type, is_number, plain_numbers
from millstream.landing.decode.column import UNFIT, text_leaf
from millstream.landing.decode.csv_grammar import Grammar
from millstream.landing.decode.fault import leaf_fault, shown
from millstream.landing.decode.lenient import INTEGERS, bent_text
from millstream.landing.decode.reader import MalformedError
from millstream.model.codec import CsvOptions
from millstream.model.data_type import Atom

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from millstream.landing.decode.time_column import TimeColumn
    from millstream.model.data_type import Field
    from millstream.model.schema import Schema

_HINT = "; if fields contain newlines, set multiline=True"
_FIXES = {
    "a quote inside an unquoted field": "quote the field and double the quote",
    "text after a closing quote": "double a quote inside a quoted field",
}


class CsvReader:
    """Reads lines of separated cells, in the order of a header or else of the schema."""

    is_text = True
    leaf = staticmethod(text_leaf)

    def __init__(
        self,
        schema: Schema,
        options: CsvOptions | None,
        times: Mapping[str, TimeColumn],
        rest: str | None = None,
        header: Sequence[str] | None = None,
    ) -> None:
        """Prepare; a source whose records are no lines of files has no options.

        Raises:
            MalformedError: The header does not have the columns.
        """
        self._schema, self._options, self._times, self._rest = schema, options, times, rest
        # By default the csv module refuses cells over 128 kB, in the whole process.
        csv.field_size_limit(sys.maxsize)
        self._hint = "" if options is None or options.multiline else _HINT
        options = options or CsvOptions()
        self.grammar = Grammar(options)
        fields = [field for field in schema.fields if field.name != rest]
        self._names = [field.name for field in fields] if header is None else list(header)
        self._nulls = frozenset(options.null_values)
        self._columns = [_Column(field, options, times.get(field.name)) for field in fields]
        self._places = None if header is None else _places(fields, header)
        is_usual = self._places is None and rest is None and len(fields) > 1
        self._usual_width = len(fields) if is_usual else -1
        """Of lines whose cells are the columns, in their order; a single cell may be a blank."""
        self._unread = _unread(fields, self._names)
        self._cells = [column.read for column in self._columns]
        self.blank = [None] * len(schema.fields)
        self.getters = [itemgetter(i) for i in range(len(schema.fields))]

    def with_header(self, raw: bytes | None) -> CsvReader:
        """Return the reader of a file that begins with this line.

        Raises:
            MalformedError: It does not name the columns.
        """
        try:
            line = (raw or b"").decode("utf-8-sig")
        except UnicodeDecodeError:
            what = "the header is not UTF-8"
            raise MalformedError(what) from None
        header = self._split(line)
        return CsvReader(self._schema, self._options, self._times, self._rest, header)

    def read(self, raw: bytes) -> list[Any]:
        """Read one line."""
        cells = self._split(raw.decode())
        if len(cells) == self._usual_width:
            return [read(cell) for read, cell in zip(self._cells, cells, strict=True)]
        cells = self._counted(raw, cells)
        if self._places is not None:
            values = [
                None if place is None else read(cells[place])
                for read, place in zip(self._cells, self._places, strict=True)
            ]
        else:
            values = [read(cell) for read, cell in zip(self._cells, cells, strict=True)]
        return values if self._rest is None else self._with_rest(values, cells)

    def _counted(self, raw: bytes, cells: list[str]) -> list[str]:
        """Refuse a line of another number of cells than the columns of the file."""
        if len(cells) == 1 and raw.isspace():
            raise MalformedError
        if len(cells) != len(self._names):
            reason = f"expected {len(self._names)} columns, got {len(cells)}"
            raise MalformedError(reason)
        return cells

    def _with_rest(self, values: list[Any], cells: list[str]) -> list[Any]:
        """Put the cells that no column reads where their column is; null if there are none."""
        place = self._schema.names.index(self._rest or "")
        rest: Any = {
            self._names[i]: None if not cells[i] or cells[i] in self._nulls else cells[i]
            for i in self._unread
        }
        if self._schema.fields[place].type is Atom.STRING:
            rest = rest and json.dumps(rest, ensure_ascii=False)
        return [*values[:place], rest or None, *values[place:]]

    def fault(self, raw: bytes) -> str | None:
        """Return what is wrong, and in which column."""
        try:
            self.read(raw)
        except MalformedError as error:
            return str(error)
        cells = self._split(raw.decode())
        found = (column.fault(cells[place]) for column, place in self._read_columns())
        return next(filter(None, found), None)

    def bend(self, raw: bytes, lenient: Collection[str]) -> tuple[bytes, tuple[str, ...]]:
        """Return a line in which more fits, and the fields of what was changed."""
        cells, found = self._counted(raw, self._split(raw.decode())), list[str]()
        for column, place in self._read_columns():
            if column.field.name in lenient and (text := column.bent(cells[place])) is not None:
                cells[place] = text
                found.append(column.field.name)
        line = io.StringIO()
        csv.writer(line, self.grammar.dialect, lineterminator="").writerow(cells)
        return line.getvalue().encode(), tuple(found)

    def _read_columns(self) -> list[tuple[_Column, int]]:
        """Return the columns that are in the file, each with its place."""
        places = range(len(self._columns)) if self._places is None else self._places
        pairs = zip(self._columns, places, strict=True)
        return [(column, place) for column, place in pairs if place is not None]

    def syntax_fault(self, line: str) -> str:
        """Return why a line is not CSV."""
        what, column = self.grammar.fault(line)
        place = repr(self._names[column]) if column < len(self._names) else column + 1
        fix = f"; {_FIXES[what]}" if what in _FIXES else ""
        hint = self._hint if "quote" in what else ""
        return f"not CSV: {what}, in column {place}{fix}{hint}"

    def _split(self, line: str) -> list[str]:
        grammar = self.grammar
        try:
            cells = next(csv.reader((line,), grammar.dialect), [])
        except csv.Error:
            raise MalformedError(self.syntax_fault(line)) from None
        # The csv module accepts a quote inside an unquoted field as a character.
        may_stray = grammar.quote and grammar.quote in line and grammar.quote in "".join(cells)
        if may_stray and not grammar.is_whole(line):
            raise MalformedError(self.syntax_fault(line))
        return cells


class _Column:
    """How the cells of one column are read."""

    def __init__(self, field: Field, options: CsvOptions, time: TimeColumn | None) -> None:
        self.field, self._kind, self._time = field, cell_type(field), time
        self._plain = plain_numbers(options) if is_number(self._kind) else None
        self.read = cell_reader(field, options.null_values, self._plain)

    def fault(self, cell: str) -> str | None:
        """Return why a cell does not fit."""
        try:
            value = self.read(cell)
        except MalformedError as error:
            return str(error)
        if value is None or isinstance(value, bytes):
            return None
        place = f"in column {self.field.name!r}"
        if self._time is not None:
            return self._time.fault(value, place)
        return leaf_fault(self._kind, value, place, text=cell)

    def bent(self, cell: str) -> str | None:
        """Return a cell that fits, if this one does not and can be bent."""
        if self.fault(cell) is None:
            return None
        try:
            plain = self._plain if self._kind in INTEGERS else None
            text = bent_text(self._kind, plain(cell.strip()) if plain else cell)
        except UNFIT:
            return None
        return None if self.fault(text) is not None else text


def _places(fields: Sequence[Field], header: Sequence[str]) -> list[int | None] | None:
    """Return where the columns are in a file; None if they are in their order, and no others.

    Raises:
        MalformedError: None is there, one is there twice, or one is not that must be.
    """
    names = [field.name for field in fields]
    if list(header) == names:
        return None
    shown_header = f"header says {', '.join(map(shown, header))}"
    if not set(header) & set(names):
        reason = f"{shown_header}; the schema says {', '.join(names)}"
        raise MalformedError(reason)
    for field in fields:
        if header.count(field.name) > 1:
            reason = f"{shown_header}, which has column {field.name!r} twice"
            raise MalformedError(reason)
        if not field.nullable and field.name not in header:
            reason = f"{shown_header}, which lacks the required column {field.name!r}"
            raise MalformedError(reason)
    return [header.index(name) if name in header else None for name in names]


def _unread(fields: Sequence[Field], names: Sequence[str]) -> list[int]:
    """Return the places of the cells that no column reads."""
    read = {field.name for field in fields}
    return [i for i, name in enumerate(names) if name not in read]
