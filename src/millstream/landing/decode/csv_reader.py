"""How lines of CSV are read, each cell strictly by the type of its column."""

from __future__ import annotations

import csv
import re
import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.landing.decode.column import NUMBER, number, written_leaf
from millstream.landing.decode.csv_grammar import Grammar
from millstream.landing.decode.fault import expected, leaf_fault, shown
from millstream.landing.decode.reader import MalformedError
from millstream.model.dataset import CsvOptions
from millstream.model.schema import Atom, Decimal, Field, Schema, Type, schema_fault, type_ddl

if TYPE_CHECKING:
    from collections.abc import Callable

_INT = re.compile(r"[+-]?\d+", re.ASCII)
_BOOLEANS = {"true": True, "false": False}
_HINT = "; if fields contain newlines, set multiline=True"
_FIXES = {
    "a quote inside an unquoted field": "quote the field and double the quote",
    "text after a closing quote": "double a quote inside a quoted field",
}


class CsvReader:
    """Reads lines of separated cells."""

    is_text = True
    leaf = staticmethod(written_leaf)

    def __init__(self, schema: Schema, options: CsvOptions | None) -> None:
        """Prepare; a source whose records are no lines of files has no options."""
        kinds = [_cell_type(field) for field in schema.fields]
        # The csv module refuses cells over 128 kB until told otherwise, for the whole process.
        csv.field_size_limit(sys.maxsize)
        self._hint = "" if options is None or options.multiline else _HINT
        options = options or CsvOptions()
        self.grammar = Grammar(options)
        self._names, self._kinds = schema.names, kinds
        self._cells = [_cell(field, options.null_value) for field in schema.fields]
        self.blank = [None] * len(schema.fields)
        self.getters = [itemgetter(i) for i in range(len(schema.fields))]

    def read(self, raw: bytes) -> list[Any]:
        """Read one line."""
        cells = self._split(raw.decode())
        if len(cells) != len(self._names):
            reason = f"expected {len(self._names)} columns, got {len(cells)}"
            raise MalformedError(reason)
        return [read(cell) for read, cell in zip(self._cells, cells, strict=True)]

    def fault(self, raw: bytes) -> str | None:
        """Say what is wrong, and in which column."""
        try:
            values = self.read(raw)
        except MalformedError as error:
            return str(error)
        cells = self._split(raw.decode())
        for name, kind, value, cell in zip(self._names, self._kinds, values, cells, strict=True):
            if value is not None and not isinstance(value, bytes):
                place = f"in column {name!r}"
                if found := leaf_fault(kind, value, place, text=cell):
                    return found
        return None

    def header_fault(self, raw: bytes | None) -> str | None:
        """Say how a header differs from the schema."""
        try:
            names = self._split((raw or b"").decode("utf-8-sig"))
        except UnicodeDecodeError:
            names = ["bytes that are not UTF-8"]
        except MalformedError as error:
            names = [str(error)]
        if names == list(self._names):
            return None
        said = ", ".join(map(shown, names))
        return f"header says {said}; the schema says {', '.join(self._names)}"

    def syntax_fault(self, line: str) -> str:
        """Say why a line is not CSV."""
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
        # The csv module takes a quote inside an unquoted field for a character of it.
        may_stray = grammar.quote and grammar.quote in line and grammar.quote in "".join(cells)
        if may_stray and not grammar.is_whole(line):
            raise MalformedError(self.syntax_fault(line))
        return cells


def _cell_type(field: Field) -> Atom | Decimal:
    if isinstance(field.type, Atom | Decimal):
        return field.type
    what = f"CSV column {field.name!r} is {type_ddl(field.type)}"
    raise schema_fault(what, fix="give it a type without parts, or read JSON")


def _cell(field: Field, null_value: str) -> Callable[[str], Any]:
    """Make the function that reads the cells of one column."""
    read, place = _CELLS.get(field.type, number), f"in column {field.name!r}"

    def cell(text: str) -> Any:
        if not text or text == null_value:
            if field.nullable:
                return None
            reason = f"missing required value, {place}"
            raise MalformedError(reason)
        try:
            return read(text)
        except (ValueError, ArithmeticError, LookupError, msgspec.ValidationError):
            reason = f"expected {expected(field.type)}, got {shown(text)!r}, {place}"
            raise MalformedError(reason) from None

    return cell


def _int(cell: str) -> int:
    if not _INT.fullmatch(cell):
        raise ValueError(cell)
    return int(cell)


def _float(cell: str) -> float:
    if not NUMBER.fullmatch(cell):
        raise ValueError(cell)
    return float(cell)


def _boolean(cell: str) -> bool:
    return _BOOLEANS[cell.lower()]


def _base64(cell: str) -> bytes:
    return msgspec.convert(cell, bytes)


_CELLS: dict[Type, Callable[[str], Any]] = {
    Atom.STRING: str,
    Atom.BOOLEAN: _boolean,
    Atom.TINYINT: _int,
    Atom.SMALLINT: _int,
    Atom.INT: _int,
    Atom.BIGINT: _int,
    Atom.FLOAT: _float,
    Atom.DOUBLE: _float,
    Atom.DATE: str,
    Atom.TIMESTAMP: str,
    Atom.TIMESTAMP_NTZ: str,
    Atom.BINARY: _base64,
}
