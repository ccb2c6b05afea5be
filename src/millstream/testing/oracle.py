"""What tables should hold: the batch answer over the rows that have landed, in no special order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import pyarrow.parquet as pq
from pyspark.sql import Row, functions as F

from millstream.build.build import build
from millstream.errors import fault
from millstream.lake.rows import read_rows
from millstream.lake.table import RULES, accepted_rows, broken_rules, keeps_out, quarantines
from millstream.landing.land import Landing
from millstream.model.dataset import Source, Table
from millstream.model.state import RAISED
from millstream.operators.build_context import BuildOptions
from millstream.testing.comparable import exact
from millstream.trial.batch import Settled, holds_back, is_open

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millstream.lake.home import Home
    from millstream.model.dataset import Expectations
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
        """Compare every table, and its quarantine, with its batch answer.

        Raises:
            NotDeterministicError: A function gives other rows for the same rows.
        """
        found: list[Difference] = []
        for table in self._tables():
            differences = [d for d in self._differences(table) if d.missing or d.extra]
            if differences:
                self._check_determinism(table.name)
            found += differences
        return tuple(found)

    def check_determinism(self) -> None:
        """Compute every table twice, from its input rows in two orders.

        Raises:
            NotDeterministicError: A function gives other rows for the same rows.
        """
        for table in self._tables():
            self._check_determinism(table.name)

    def _tables(self) -> tuple[Table, ...]:
        live = {source.name for source in self._graph.sources if source.live}
        tables = self._graph.ordered_tables
        return tuple(t for t in tables if not live & self._graph.upstream(t.name))

    def _differences(self, table: Table) -> Iterator[Difference]:
        wanted, quarantine = self._wanted(table), self._home.quarantine(table.name)
        stored = [exact(row) for row in self._stored(table.name).to_pylist()]
        yield _difference(table.name, wanted.kept, stored, wanted.held)
        aside = _read(quarantine).to_pylist() if quarantine.exists() else []
        quarantined = [_quarantined(row) for row in aside]
        if table.mode == "update":
            # It has every answer of a key that broke a rule, though a later one may not.
            final = {*wanted.aside}
            yield _difference(quarantine.name, final, final & {*quarantined}, wanted.held)
        else:
            yield _difference(quarantine.name, wanted.aside, quarantined, wanted.held)

    def _wanted(self, table: Table) -> _Wanted:
        settled = Settled(self._graph, self._home, self._computed, self._streamed)
        with TemporaryDirectory(prefix="millstream-oracle-") as folder:
            aside = Path(folder)
            built = settled.rebuilt(table, aside) or build(
                self._graph,
                table.name,
                self._computed,
                BuildOptions(aside=aside, models=self._home.models),
            )
            still = F.lit(False)
            if holds_back(table, self._home):
                behind_us = settled.behind_us.get(table.name, 0)
                still = is_open(built.frame, table, self._home, behind_us)
            marks = {RULES: broken_rules(table.expect), _OPEN: still}
            rows = built.frame.withColumns(marks).toArrow().to_pylist()
            files = sorted(aside.glob("*/*.parquet"))
            raised = [row for file in files for row in pq.read_table(file).to_pylist()]
        return _Wanted.of(table.expect, rows, raised)

    def _check_determinism(self, name: str) -> None:
        table = self._graph.datasets[name]
        one, other = (Counter(self._answer(name, backwards=back)) for back in (False, True))
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

    def _answer(self, name: str, *, backwards: bool) -> list[Any]:
        """Compute the rows of a table and of its quarantine, from its input in some order."""
        read = partial(self._computed, backwards=backwards)
        options = BuildOptions(models=self._home.models)
        frame = build(self._graph, name, read, options).frame
        return [exact(row) for row in frame.toArrow().to_pylist()]

    def _computed(self, name: str, *, backwards: bool = False) -> DataFrame:
        dataset = self._graph.datasets[name]
        if isinstance(dataset, Source):
            return self._frame(_landed(dataset, self._home, backwards=backwards))
        read = partial(self._computed, backwards=backwards)
        frame = build(self._graph, name, read, BuildOptions(models=self._home.models)).frame
        return accepted_rows(frame, dataset.expect) if isinstance(dataset, Table) else frame

    def _streamed(self, name: str) -> DataFrame:
        return self._frame(self._stored(name))

    def _frame(self, rows: pa.Table) -> DataFrame:
        # pyspark rejects a nested column that is not a single chunk.
        return self._spark.createDataFrame(rows if rows.num_rows else rows.schema.empty_table())

    def _stored(self, name: str) -> pa.Table:
        return _read(self._home.table(name))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The rows that a table and its quarantine should hold."""

    kept: list[Any]
    aside: list[Any]
    held: list[Any]
    """Those of both that the stream may hold back."""

    @staticmethod
    def of(
        expect: Expectations, rows: list[dict[str, Any]], raised: list[dict[str, Any]]
    ) -> _Wanted:
        """Judge the rows of an answer, each with the rules that it breaks."""
        kept, aside, held = list[Any](), [_quarantined(row) for row in raised], list[Any]()
        for row in rows:
            is_held, rules = row.pop(_OPEN), row.pop(RULES)
            if rules and keeps_out(expect):
                if quarantines(expect):
                    aside.append(_quarantined(row | {RULES: rules}))
                    held += aside[-1:] * is_held
            else:
                kept.append(exact(row))
                held += kept[-1:] * is_held
        return _Wanted(kept, aside, held)


def _quarantined(row: dict[str, Any]) -> Any:
    """Make a row of a quarantine countable: without its nulls, and without a traceback."""
    return exact({n: value for n, value in row.items() if value is not None and n != RAISED})


def _difference(
    name: str, wanted: Iterable[Any], stored: Iterable[Any], held: Iterable[Any]
) -> Difference:
    expected, found = Counter(wanted), Counter(stored)
    missing = expected - found
    for row in held:
        missing[row] -= min(missing[row], 1)
    return Difference(name, _rows(missing), _rows(found - expected))


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    return read_rows(path, columns)


def _landed(source: Source, home: Home, *, backwards: bool) -> pa.Table:
    # Sorted: an answer that depends on the order of arrival is not the batch answer.
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
    return Row(**{name: _value(inner) for name, inner in row})


def _value(value: Any) -> Any:
    if _is_struct(value):
        return _row(value)
    return tuple(map(_value, value)) if isinstance(value, tuple) else value


def _is_struct(value: Any) -> bool:
    pairs = isinstance(value, tuple) and bool(value) and all(isinstance(v, tuple) for v in value)
    return pairs and all(len(v) == 2 and isinstance(v[0], str) for v in value)


def rows_of(home: Home, name: str, *columns: str) -> list[Row]:
    """Read a table without Spark; return its rows sorted, with some of its columns or all."""
    table = _read(home.table(name), list(columns) or None)
    return sorted((_row(exact(row)) for row in table.to_pylist()), key=str)
