"""Checks of an answer against a table that exists already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.systems import relational as sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.serve.fence import Place
    from millstream.serve.shape import Shape


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of an existing table."""

    type: str
    kind: str
    """The type without its length and precision, as types are compared."""
    is_required: bool
    """Whether a row without it is refused."""


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column of an answer, as a store would have it."""

    type: str
    fits: tuple[str, ...]
    """Kinds that can hold it."""


def columns_to_add(
    held: Mapping[str, StoredColumn], wanted: Mapping[str, WantedColumn], shape: Shape, place: Place
) -> list[str]:
    """Check an answer against a table; return the columns that the table lacks.

    Raises:
        STORE_COLUMN_TYPE: A column cannot hold what the answer has for it.
        STORE_COLUMN_MISSING: The table lacks a column, and evolution was not asked for.
        STORE_COLUMN_REQUIRED: The table requires a column that the answer lacks.
    """
    at, store = shape.at, place.name
    for name, column in wanted.items():
        if name in held and held[name].kind not in column.fits:
            got = held[name].type
            raise fault(
                "STORE_COLUMN_TYPE",
                at=at,
                store=store,
                column=name,
                got=got,
                expected=" or ".join(column.fits),
            )
    lacking = [name for name in wanted if name not in held]
    if lacking and not shape.evolve:
        kind = wanted[lacking[0]].type
        raise fault("STORE_COLUMN_MISSING", at=at, store=store, column=lacking[0], type=kind)
    for name, there in held.items():
        if name not in wanted and there.is_required:
            raise fault("STORE_COLUMN_REQUIRED", at=at, store=store, column=name)
    return lacking


def check_key(indexes: Iterable[set[str]], shape: Shape, place: Place, table: str) -> None:
    """Check that a unique index of the table enforces the key.

    Raises:
        STORE_KEY: No unique index is on exactly these columns.
    """
    if not any(index == set(shape.key) for index in indexes):
        name = sql.quoted("_".join((shape.dataset, *shape.key)))
        statement = f"`CREATE UNIQUE INDEX {name} ON {table} ({sql.listed(shape.key)})`"
        raise fault(
            "STORE_KEY",
            at=shape.at,
            store=place.name,
            key=", ".join(shape.key),
            statement=statement,
        )
