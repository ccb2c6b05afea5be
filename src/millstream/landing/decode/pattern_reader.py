"""How lines are read by a pattern, whose named groups are the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode.cell import cell_reader, cell_type
from millstream.landing.decode.column import UnfitError, arrow_type, text_leaf
from millstream.landing.decode.fault import leaf_fault, shown
from millstream.landing.decode.reader import MalformedError
from millstream.model.data_type import Atom

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.landing.decode.column import Column
    from millstream.landing.decode.time_column import TimeColumn
    from millstream.model.data_type import Field
    from millstream.model.line_pattern import LinePattern
    from millstream.model.schema import Schema

_BEGUN = "millstream"
"""The group of what matches of a line."""
_EMPTY: Any = pa.scalar("")
_NULL: Any = pa.scalar(None, pa.string())
_INTEGER = r"^-?[0-9]{1,18}$"
_INTEGERS = (Atom.TINYINT, Atom.SMALLINT, Atom.INT, Atom.BIGINT)


def pattern_fault(regex: str) -> str | None:
    """Return why RE2, which matches in a time that grows with the line alone, refuses a pattern."""
    try:
        _extracted(pa.array([""]), regex)
    except pa.ArrowInvalid as error:
        return str(error).partition("Invalid regular expression: ")[2] or str(error)
    return None


class PatternReader:
    """Reads lines that a pattern matches from their first character to their last."""

    is_text = True

    def __init__(
        self, schema: Schema, times: Mapping[str, TimeColumn], pattern: LinePattern
    ) -> None:
        self._parts = pattern.parts
        self._whole = pattern.matching(schema.names)
        self._groups = [_Group(field, times.get(field.name)) for field in schema.fields]

    def read_batch(self, records: Column) -> tuple[Sequence[Column], dict[int, str]]:
        """Read lines."""
        lines = records.cast(pa.string())
        found = _extracted(lines, self._whole)
        stray: Any = pc.and_not(lines.is_valid(), found.is_valid())
        faults = self._reasons(lines, np.flatnonzero(stray))
        columns = [group.read(found, faults) for group in self._groups]
        if not faults:
            return columns, faults
        hit = np.zeros(len(lines), dtype=bool)
        hit[sorted(faults)] = True
        mask = pa.array(hit)
        nulls = (pa.scalar(None, column.type) for column in columns)
        return [pc.if_else(mask, n, c) for n, c in zip(nulls, columns, strict=True)], faults

    def _reasons(self, lines: Column, rows: Any) -> dict[int, str]:
        """Say where each of some lines stops to match: after most parts of the pattern."""
        reasons: dict[int, str] = {}
        reached = np.zeros(len(rows), np.int64)
        for n, part in enumerate(self._parts, 1):
            if not len(rows):
                return reasons
            regex = rf"\A(?P<{_BEGUN}>{''.join(self._parts[:n])})"
            begun = _extracted(lines.take(pa.array(rows)), regex)
            there = begun.is_valid().to_numpy(zero_copy_only=False)
            for row, end in zip(rows[~there].tolist(), reached[~there].tolist(), strict=True):
                reasons[row] = _stop(lines[row].as_py(), end, part)
            reached = pc.utf8_length(begun.field(_BEGUN)).to_numpy(zero_copy_only=False)[there]
            rows = rows[there]
        for row, end in zip(rows.tolist(), reached.tolist(), strict=True):
            rest = shown(lines[row].as_py()[end:])
            reasons[row] = (
                f"the pattern ends before character {end + 1}, near {rest!r}; add .* to it"
            )
        return reasons


class _Group:
    """Reads what a group of the pattern matches into a column."""

    def __init__(self, field: Field, time: TimeColumn | None) -> None:
        self._name, self._kind, self._time = field.name, cell_type(field, "text"), time
        self._cell = cell_reader(field)
        self._is_nullable = field.nullable
        self._is_plain = field.type is Atom.STRING and field.nullable
        self._build = time.build if time else text_leaf(self._kind)

    def read(self, found: Any, faults: dict[int, str]) -> Column:
        """Read one group of all lines; add what is wrong, unless something is wrong already."""
        group = found.field(self._name)
        texts: Column = pc.if_else(pc.equal(group, _EMPTY), _NULL, group)
        if self._is_plain:
            return texts
        if (
            self._kind in _INTEGERS
            and not self._time
            and (whole := self._integers(texts)) is not None
        ):
            return whole
        cells, values = texts.to_pylist(), list[Any]()
        for row, cell in enumerate(cells):
            try:
                values.append(self._cell(cell))
            except MalformedError as error:
                faults.setdefault(row, str(error))
                values.append(None)
        return self._built(cells, values, faults)

    def _integers(self, texts: Column) -> Column | None:
        """Read whole numbers together; None if any is written in another way, or does not fit."""
        whole = pc.all(pc.match_substring_regex(texts, _INTEGER), min_count=0).as_py()
        if not whole or (texts.null_count and not self._is_nullable):
            return None
        try:
            return texts.cast(pa.int64()).cast(arrow_type(self._kind))
        except pa.ArrowInvalid:
            return None

    def _built(
        self, cells: Sequence[str | None], values: list[Any], faults: dict[int, str]
    ) -> Column:
        try:
            return self._build(values)
        except UnfitError as error:
            for row in error.rows:
                faults.setdefault(row, self._unfit(values[row], cells[row]))
                values[row] = None
        return self._built(cells, values, faults)

    def _unfit(self, value: Any, cell: str | None) -> str:
        place = f"in column {self._name!r}"
        if self._time is not None:
            found = self._time.fault(value, place)
        else:
            found = leaf_fault(self._kind, value, place, text=cell)
        return found or f"not as the schema says, {place}"


def _extracted(lines: Column, regex: str) -> Any:
    """Match lines; return the groups of each as a struct, null where it does not match."""
    found: Any = pc.extract_regex(lines, pattern=regex)
    return found


def _stop(line: str, end: int, part: str) -> str:
    if end == len(line):
        return f"does not match the pattern: the line ends where {shown(part)!r} is expected"
    where = f"character {end + 1}, near {shown(line[end:])!r}"
    return f"does not match the pattern: {shown(part)!r} is expected at {where}"
