"""Columns as operators are told them: by name, one or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.errors import OperatorColumnError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location


def names_of(columns: str | Sequence[str]) -> tuple[str, ...]:
    """Give names as a tuple, whether one is said or several.

    >>> names_of("ad_id"), names_of(["ad_id", "site"])
    (('ad_id',), ('ad_id', 'site'))
    """
    return (columns,) if isinstance(columns, str) else tuple(columns)


def quoted(name: str, of: str | None = None) -> Column:
    """Give a column by its name, whatever letters that has."""
    text = name.replace("`", "``")
    return F.col(f"`{text}`" if of is None else f"{of}.`{text}`")


def typed(rows: DataFrame, names: Sequence[str]) -> str:
    """Tell columns with their types, as a checkpoint is told what its state holds."""
    return ", ".join(f"{name} {rows.schema[name].dataType.simpleString()}" for name in names)


def hold_columns(
    rows: DataFrame,
    names: Sequence[str],
    *,
    call: str,
    option: str,
    named: str = "the rows",
    at: Location,
) -> None:
    """Make sure that rows have columns.

    Raises:
        OperatorColumnError: They do not.
    """
    for name in names:
        if name not in rows.columns:
            raise OperatorColumnError(
                call,
                name,
                option=option,
                why=f"which {named} do not have",
                columns=rows.columns,
                at=at,
            )
