"""Random joins of small tables whose columns share names."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

if TYPE_CHECKING:
    from millstream.lake.home import Home

# The same names in another order, of another type, in other letters; nulls and repeated keys.
TABLES = {
    "a": {
        "x": pa.array([1, 2, 3, 4], pa.int32()),
        "k": pa.array(["p", "q", None, "q"]),
        "v": pa.array([1, 2, 3, None], pa.int32()),
        "j": pa.array([7, 8, 8, None], pa.int32()),
    },
    "b": {
        "v": pa.array([Decimal("1.0"), Decimal("2.5"), None, Decimal("3.0")], pa.decimal128(6, 1)),
        "J": pa.array([8, 9, 7, None], pa.int32()),
        "y": pa.array([True, False, None, True]),
        "k": pa.array(["q", "r", None, "p"]),
    },
    "c": {
        "j": pa.array([8, 7, None], pa.int64()),
        "z": pa.array(["one", "two", "three"]),
        "v": pa.array([1.0, None, 3.0], pa.float64()),
        "k": pa.array(["p", "s", "q"]),
    },
}
_SHARED = ("k", "v", "j")
_SIDES = ("", "INNER ", "LEFT ", "RIGHT ", "FULL ", "LEFT SEMI ", "LEFT ANTI ")


def make_tables(home: Home) -> None:
    """Write the tables `a`, `b` and `c`."""
    home.prepare("joins", sources=[])
    for name, columns in TABLES.items():
        write_deltalake(str(home.table(name)), pa.table(columns))


def queries(count: int, *, seed: int) -> list[str]:
    """Draw differing queries: stars and names of joins of two or three tables."""
    random = Random(seed)
    drawn: dict[str, None] = {}
    while len(drawn) < count:
        drawn[_query(random)] = None
    return list(drawn)


def _query(random: Random) -> str:
    tables = random.sample(list(TABLES), random.choice([2, 3]))
    joined = _from(random, tables)
    if random.random() < 0.2:
        joined, tables = f"(SELECT {_items(random, tables)} FROM {joined}) AS s", ["s"]
    where = f" WHERE {_name(random, tables)} IS NOT NULL" if random.random() < 0.2 else ""
    if random.random() < 0.1:
        key = _name(random, tables)
        return f"SELECT {key}, count(*) AS n FROM {joined}{where} GROUP BY {key}"
    order = f" ORDER BY {_name(random, tables)}" if random.random() < 0.2 else ""
    return f"SELECT {_items(random, tables)} FROM {joined}{where}{order}"


def _from(random: Random, tables: list[str]) -> str:
    reported = tables[0]
    for number, table in enumerate(tables[1:], 1):
        side, on = random.choice(_SIDES), random.choice(_SHARED)
        using = ", ".join(random.sample(_SHARED, random.choice([1, 1, 2, 3])))
        reported += random.choice(
            [
                f" {side}JOIN {table} USING ({using})",
                f" {side}JOIN {table} USING ({using})",
                f" NATURAL {side}JOIN {table}",
                f" {side}JOIN {table} ON {random.choice(tables[:number])}.{on} = {table}.{on}",
                f" {side}JOIN {table}",
                random.choice([f" CROSS JOIN {table}", f", {table}"]),
            ]
        )
    return reported


def _name(random: Random, tables: list[str]) -> str:
    name = random.choice(_SHARED)
    return name if random.random() < 0.3 else f"{random.choice(tables)}.{name}"


def _items(random: Random, tables: list[str]) -> str:
    return ", ".join(_item(random, tables) for _ in range(random.choice([1, 1, 2, 3])))


def _item(random: Random, tables: list[str]) -> str:
    if random.random() < 0.2:
        return _name(random, tables)
    star = random.choice(["*", *(f"{table}.*" for table in tables)])
    return f"{star} EXCEPT ({random.choice(_SHARED)})" if random.random() < 0.2 else star
