"""What tables should hold: the batch answer over the rows that have landed, in no special order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from deltalake import DeltaTable
from pyspark.sql import Row

from millstream.build.build import build
from millstream.errors import fault
from millstream.lake.table import rows_let_in
from millstream.landing.land import Landing
from millstream.model.dataset import Source, Table
from millstream.testing.exact import exact
from millstream.trial.batch import Settled, holds_back, is_open

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millstream.lake.home import Home
    from millstream.model.graph import Graph

_SHOWN = 5
_OPEN = "_open"


@dataclass(frozen=True, slots=True)
class Difference:
    """How a table differs from the batch answer."""

    table: str
    missing: tuple[Row, ...]
    """Rows of the batch answer that the table lacks."""
    extra: tuple[Row, ...]
    """Rows of the table that the batch answer lacks."""

    def __str__(self) -> str:
        parts = []
        for what, rows in (("lacks", self.missing), ("has, and should not,", self.extra)):
            if rows:
                more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
                parts.append(f"{what} {', '.join(map(str, rows[:_SHOWN]))}{more}")
        return f"{self.table} {'; '.join(parts)}"


class Oracle:
    """The batch answers of one home, for as small tables as tests have."""

    def __init__(self, graph: Graph, spark: SparkSession, home: Home) -> None:
        self._graph, self._spark, self._home = graph, spark, home

    def differences(self) -> tuple[Difference, ...]:
        """Compare every table with its batch answer.

        Raises:
            NotDeterministicError: A function gives other rows for the same rows.
        """
        found = tuple(d for d in map(self._difference, self._tables()) if d.missing or d.extra)
        for difference in found:
            self._hold_to_determinism(difference.table)
        return found

    def hold_to_determinism(self) -> None:
        """Compute every table twice, from its rows in this order and in that.

        Raises:
            NotDeterministicError: A function gives other rows for the same rows.
        """
        for table in self._tables():
            self._hold_to_determinism(table.name)

    def _tables(self) -> tuple[Table, ...]:
        live = {source.name for source in self._graph.sources if source.live}
        ordered = (d for d in self._graph.ordered if isinstance(d, Table))
        return tuple(t for t in ordered if not live & self._graph.upstream(t.name))

    def _difference(self, table: Table) -> Difference:
        wanted, are_open = self._wanted(table)
        held = Counter(map(exact, self._held(table.name).to_pylist()))
        expected = Counter(wanted)
        missing = expected - held
        for row in are_open:
            missing[row] -= min(missing[row], 1)
        return Difference(table.name, _rows(missing), _rows(held - expected))

    def _wanted(self, table: Table) -> tuple[list[Any], list[Any]]:
        settled = Settled(self._graph, self._home, self._computed, self._streamed)
        frame = settled.answer(table)
        if not holds_back(table, self._home):
            return [exact(row) for row in frame.toArrow().to_pylist()], []
        still = is_open(frame, table, self._home, settled.behind_us.get(table.name, 0))
        rows = frame.withColumn(_OPEN, still).toArrow()
        wanted = [exact(row) for row in rows.drop_columns([_OPEN]).to_pylist()]
        return wanted, [w for w, o in zip(wanted, rows[_OPEN].to_pylist(), strict=True) if o]

    def _hold_to_determinism(self, name: str) -> None:
        table = self._graph.datasets[name]
        one = Counter(map(exact, self._computed(name).toArrow().to_pylist()))
        other = Counter(map(exact, self._computed(name, backwards=True).toArrow().to_pylist()))
        if one != other:
            first, second = (
                next(iter(_rows(rows)), "nothing") for rows in (one - other, other - one)
            )
            raise fault(
                "NOT_DETERMINISTIC",
                at=table.at,
                table=name,
                one=str(first),
                other=str(second),
                shown="",
            )

    def _computed(self, name: str, *, backwards: bool = False) -> DataFrame:
        dataset = self._graph.datasets[name]
        if isinstance(dataset, Source):
            return self._frame(_landed(dataset, self._home, backwards=backwards))
        read = partial(self._computed, backwards=backwards)
        frame = build(self._graph, name, read).frame
        return rows_let_in(frame, dataset.expect) if isinstance(dataset, Table) else frame

    def _streamed(self, name: str) -> DataFrame:
        return self._frame(self._held(name))

    def _frame(self, rows: pa.Table) -> DataFrame:
        # pyspark takes no nested column that has not a single chunk.
        return self._spark.createDataFrame(rows if rows.num_rows else rows.schema.empty_table())

    def _held(self, name: str) -> pa.Table:
        return _read(self._home.table(name))


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    return DeltaTable(str(path)).to_pyarrow_table(columns=columns)


def _landed(source: Source, home: Home, *, backwards: bool) -> pa.Table:
    # In an order of their own: an answer that depends on the order of arrival is not the batch's.
    import pyarrow as pa
    import pyarrow.compute as pc

    names = list(Landing.of(source).schema.names)
    rows = _read(home.table(source.name), [*names, "_verdict"])
    rows = rows.filter(pc.field("_verdict") == "ok").select(names)
    flat = [n for n in names if not pa.types.is_nested(rows.schema.field(n).type)]
    first = [source.event_time] if source.event_time else []
    order: Literal["ascending", "descending"] = "descending" if backwards else "ascending"
    keys = [(n, order) for n in dict.fromkeys((*first, *flat)) if n in flat]
    return rows.sort_by(keys) if keys else rows


def _rows(counted: Counter[Any]) -> tuple[Row, ...]:
    return tuple(sorted((_row(row) for row in counted.elements()), key=str))


def _row(row: Any) -> Row:
    return Row(**{name: _row(v) if _is_struct(v) else v for name, v in row})


def _is_struct(value: Any) -> bool:
    pairs = isinstance(value, tuple) and bool(value) and all(isinstance(v, tuple) for v in value)
    return pairs and all(len(v) == 2 and isinstance(v[0], str) for v in value)


def rows_of(home: Home, name: str, *columns: str) -> list[Row]:
    """Read a table without Spark; give its rows sorted, with some of its columns or all."""
    table = _read(home.table(name), list(columns) or None)
    return sorted((_row(exact(row)) for row in table.to_pylist()), key=str)
