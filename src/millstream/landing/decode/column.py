"""How lists of decoded values become Arrow columns, whole columns at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal as Number, Inexact, InvalidOperation
from functools import cache
from itertools import accumulate, chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.data_type import Array, Atom, Decimal, Field, Map, Struct, Type

Column: TypeAlias = "pa.Array[Any]"
Build: TypeAlias = Callable[[Sequence[Any]], Column]

UNFIT = (ValueError, TypeError, ArithmeticError)
"""What turning a value into its type raises when it does not fit."""


class UnfitError(ValueError):
    """Some values of a column do not fit its type."""

    def __init__(self, rows: Sequence[int]) -> None:
        self.rows = rows
        """All of them."""
        super().__init__(rows)


_ZONED = pa.timestamp("us", tz="UTC")
_LOCAL = pa.timestamp("us")
_ATOMS: dict[Atom, pa.DataType] = {
    Atom.STRING: pa.string(),
    Atom.BOOLEAN: pa.bool_(),
    Atom.TINYINT: pa.int8(),
    Atom.SMALLINT: pa.int16(),
    Atom.INT: pa.int32(),
    Atom.BIGINT: pa.int64(),
    Atom.FLOAT: pa.float32(),
    Atom.DOUBLE: pa.float64(),
    Atom.DATE: pa.date32(),
    Atom.TIMESTAMP: _ZONED,
    Atom.TIMESTAMP_NTZ: _LOCAL,
    Atom.BINARY: pa.binary(),
}
_CHUNK = 128
_EPOCH = date(1970, 1, 1).toordinal()
DAYS = (date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH)
MICROS = (DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1)

# Arrow's own grammar for text to timestamp, plus fractions finer than a microsecond: a record's
# verdict must not depend on whether its neighbours let the whole column take the fast way.
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = r"(?:[01]\d|2[0-3])"
_LOCAL_TEXT = rf"\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}(?::\d\d(?::\d\d(?:\.\d+)?)?)?"
_LOCAL_INSTANT = re.compile(rf"{_LOCAL_TEXT})?", re.ASCII)
_INSTANT = re.compile(rf"{_LOCAL_TEXT}(?:Z|[+-]{_CLOCK}(?::?[0-5]\d)?)?)?", re.ASCII)
_FINE = re.compile(r"\.\d{7}")
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def arrow_type(kind: Type) -> pa.DataType:
    """Give the Arrow type that Spark reads as this type, nullable throughout."""
    match kind:
        case Atom():
            return _ATOMS[kind]
        case Decimal():
            return pa.decimal128(kind.precision, kind.scale)
        case Array():
            return pa.list_(pa.field("element", arrow_type(kind.element)))
        case Map():
            return pa.map_(pa.string(), arrow_type(kind.value))
        case Struct():
            return pa.struct(arrow_fields(kind.fields))


def arrow_fields(fields: Iterable[Field]) -> list[pa.Field[Any]]:
    """Give the Arrow fields of these columns, all nullable."""
    return [pa.field(field.name, arrow_type(field.type)) for field in fields]


def attribute(index: int) -> str:
    """Name the attribute that holds a column: column names need not be identifiers."""
    return f"f{index}"


def builder(kind: Type, leaf: Callable[[Atom | Decimal], Build]) -> Build:
    """Make the function that turns values of one type into a column, or raises `UnfitError`.

    Args:
        kind: The type.
        leaf: Makes that function for a type without parts.
    """
    match kind:
        case Array():
            return _lists(kind, builder(kind.element, leaf))
        case Map():
            return _maps(kind, builder(kind.value, leaf))
        case Struct():
            return _structs(kind, [builder(field.type, leaf) for field in kind.fields])
        case Atom() | Decimal():
            return leaf(kind)


def text_leaf(kind: Atom | Decimal) -> Build:
    """Make the function that turns values of JSON or CSV into a column."""
    return _by_chunks(arrow_type(kind), *ways(kind))


@cache
def ways(kind: Atom | Decimal) -> tuple[Build, Callable[[Any], Any]]:
    """Return the fast way to read a whole column and the exact way to read one value of it.

    Either raises one of `UNFIT`; the fast way may do so for values that the exact way accepts.
    """
    match kind:
        case Atom.TIMESTAMP:
            return _instants, _instant
        case Atom.TIMESTAMP_NTZ:
            return _local_instants, _local_instant
        case Atom.DATE:
            return _dates, _date
        case Decimal():
            return _decimals(kind)
        case _:
            return _plain(kind)


def number(text: str) -> Number:
    """Read plain decimal notation exactly.

    >>> number("1.10")
    Decimal('1.10')
    """
    if not NUMBER.fullmatch(text):
        raise ValueError(text)
    return Number(text)


def _by_chunks(of: pa.DataType, whole: Build, one: Callable[[Any], Any]) -> Build:
    """Build a column whole; if that fails, by chunks, and value by value where needed."""

    def chunk(values: Sequence[Any], start: int, unfit: list[int]) -> Column:
        try:
            return whole(values)
        except UNFIT:
            pass
        read: list[Any] = []
        for i, value in enumerate(values, start):
            try:
                read.append(None if value is None else one(value))
            except UNFIT:
                unfit.append(i)
        return pa.array(read, of)

    def build(values: Sequence[Any]) -> Column:
        try:
            return whole(values)
        except UNFIT:
            pass
        unfit: list[int] = []
        starts = range(0, len(values), _CHUNK)
        chunks = [chunk(values[start : start + _CHUNK], start, unfit) for start in starts]
        if unfit:
            raise UnfitError(unfit)
        return pa.concat_arrays(chunks)

    return build


def _plain(kind: Atom) -> tuple[Build, Callable[[Any], Any]]:
    of = arrow_type(kind)

    def whole(values: Sequence[Any]) -> Column:
        column = pa.array(values, of)
        if pa.types.is_floating(of) and pc.any(pc.is_inf(column)).as_py():
            raise OverflowError
        return column

    def one(value: Any) -> Any:
        whole([value])
        return value

    return whole, one


def _instants(values: Sequence[str | None]) -> Column:
    # A cast that fails writes an error for each row, at ten times the cost of one that works:
    # let the first value say which cast it should be, if any.
    first = next(filter(None, values), "")
    if _FINE.search(first):
        raise ValueError(first)
    kind = _LOCAL if _LOCAL_INSTANT.fullmatch(first) else _ZONED
    return _within(MICROS, pa.array(values, pa.string()).cast(kind).cast(_ZONED), pa.int64())


def _instant(text: str) -> datetime:
    if not _INSTANT.fullmatch(text):
        raise ValueError(text)
    # Arrow takes a datetime without a zone as UTC, and far faster than one with a zone.
    moment = datetime.fromisoformat(text.removesuffix("Z"))
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _local_instants(values: Sequence[str | None]) -> Column:
    return _within(MICROS, pa.array(values, pa.string()).cast(_LOCAL), pa.int64())


def _local_instant(text: str) -> datetime:
    if not _LOCAL_INSTANT.fullmatch(text):
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _dates(values: Sequence[str | None]) -> Column:
    return _within(DAYS, pa.array(values, pa.string()).cast(pa.date32()), pa.int32())


def _date(text: str) -> date:
    if not _DAY.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)


def _within(bounds: tuple[int, int], column: Column, counted: pa.DataType) -> Column:
    """Refuse years that Spark, Delta and Python do not share."""
    least, greatest = pc.min_max(column.cast(counted)).values()
    if least.is_valid and not (bounds[0] <= least.as_py() and greatest.as_py() <= bounds[1]):
        raise OverflowError
    return column


def _decimals(kind: Decimal) -> tuple[Build, Callable[[Any], Any]]:
    of = pa.decimal128(kind.precision, kind.scale)
    unit = Number(1).scaleb(-kind.scale)
    context = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])

    def whole(values: Sequence[Any]) -> Column:
        return pa.array(values, of)

    def one(value: Number | int | str) -> Number:
        exact = number(value) if isinstance(value, str) else Number(value)
        return exact.quantize(unit, context=context)

    return whole, one


def _lists(kind: Array, build_elements: Build) -> Build:
    of = arrow_type(kind)

    def build(values: Sequence[Sequence[Any] | None]) -> Column:
        elements = list(chain.from_iterable(v for v in values if v))
        parts = _parts(build_elements, elements, values)
        return pa.ListArray.from_arrays(_offsets(values), parts, type=of, mask=_nulls(values))

    return build


def _maps(kind: Map, build_items: Build) -> Build:
    of = arrow_type(kind)

    def build(values: Sequence[dict[str, Any] | None]) -> Column:
        keys = pa.array([key for v in values if v for key in v], pa.string())
        items = _parts(build_items, [item for v in values if v for item in v.values()], values)
        make: Any = pa.MapArray.from_arrays  # the stubs know no keys with a type
        column: Column = make(_offsets(values), keys, items, type=of, mask=_nulls(values))
        return column

    return build


def _structs(kind: Struct, parts_of: Sequence[Build]) -> Build:
    fields = arrow_fields(kind.fields)
    builds = [(attribute(i), build) for i, build in enumerate(parts_of)]

    def build(values: Sequence[Any]) -> Column:
        parts: list[Column] = []
        unfit: list[int] = []
        for name, build_part in builds:
            try:
                parts.append(build_part([getattr(v, name, None) for v in values]))
            except UnfitError as error:
                unfit += error.rows
        if unfit:
            raise UnfitError(unfit)
        return pa.StructArray.from_arrays(parts, fields=fields, mask=_nulls(values))

    return build


def _parts(build: Build, parts: list[Any], values: Sequence[Any]) -> Column:
    try:
        return build(parts)
    except UnfitError as error:
        owners = [i for i, value in enumerate(values) if value for _ in value]
        raise UnfitError([owners[row] for row in error.rows]) from None


def _offsets(values: Sequence[Any]) -> Any:
    return pa.array(accumulate((len(v) if v else 0 for v in values), initial=0), pa.int32())


def _nulls(values: Sequence[Any]) -> Any:
    return pa.array([value is None for value in values], pa.bool_())
