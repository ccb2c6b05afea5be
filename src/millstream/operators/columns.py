"""Columns as users pass them to operators: by name, one or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, CalendarIntervalType, MapType, StructType, VariantType

from millstream.model.data_type import quoted_name
from millstream.operators.fault import column_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from millstream.errors import Location


def names_of(columns: str | Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple, whether one is passed or several.

    >>> names_of("ad_id"), names_of(["ad_id", "site"])
    (('ad_id',), ('ad_id', 'site'))
    """
    return (columns,) if isinstance(columns, str) else tuple(columns)


def quoted(name: str, of: str | None = None) -> Column:
    """Return a column by its name, whatever characters that has."""
    text = quoted_name(name)
    return F.col(text if of is None else f"{of}.{text}")


def typed(rows: DataFrame, names: Sequence[str]) -> str:
    """Return columns with their types, as text for the description of state."""
    return ", ".join(f"{name} {rows.schema[name].dataType.simpleString()}" for name in names)


def types_of(rows: DataFrame, called: str) -> dict[str, str]:
    """Return the type of each column of rows, for the description of state."""
    return {f"{f.name!r} of {called}": f.dataType.simpleString() for f in rows.schema.fields}


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that no column has; Spark ignores case.

    >>> free_name("_left", ["at"]), free_name("_left", ["_LEFT", "at"])
    ('_left', '__left')
    """
    others = {other.lower() for other in taken}
    while name.lower() in others:
        name = f"_{name}"
    return name


def has_within(kind: DataType, kinds: tuple[type[DataType], ...]) -> bool:
    """Return whether a type is one of some kinds, or contains one.

    >>> from pyspark.sql.types import ArrayType, LongType, MapType, StringType
    >>> maps = ArrayType(MapType(StringType(), LongType()))
    >>> has_within(maps, (MapType,)), has_within(ArrayType(LongType()), (MapType,))
    (True, False)
    """
    match kind:
        case _ if isinstance(kind, kinds):
            return True
        case StructType():
            return any(has_within(field.dataType, kinds) for field in kind.fields)
        case ArrayType():
            return has_within(kind.elementType, kinds)
        case MapType():
            return has_within(kind.keyType, kinds) or has_within(kind.valueType, kinds)
    return False


def check_order(rows: DataFrame, groups: Sequence[str], *, call: str, at: Location) -> None:
    """Check that rows have an order beside the columns that group them.

    Raises:
        OPERATOR_COLUMN: A column has a type without order.
    """
    for name in (name for name in rows.columns if name not in groups):
        kind = rows.schema[name].dataType
        if has_within(kind, (MapType, VariantType, CalendarIntervalType)):
            why = f"which is {kind.simpleString()}: such rows have no order"
            raise column_fault(call, name, why=why, columns=rows.columns, at=at)


def check_columns(
    rows: DataFrame,
    names: Sequence[str],
    *,
    call: str,
    option: str,
    named: str = "the rows",
    at: Location,
) -> None:
    """Check that rows have columns.

    Raises:
        OPERATOR_COLUMN: They do not.
    """
    for name in names:
        if name not in rows.columns:
            raise column_fault(
                call,
                name,
                option=option,
                why=f"which {named} do not have",
                columns=rows.columns,
                at=at,
            )
