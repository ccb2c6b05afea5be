"""Two models on the rows that both have scored: how good each is, and how often they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import fault, listed
from millstream.learn.columns import KIND, LEARNT, OWN, PREDICTION, SCORED
from millstream.views.models import check_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.lake.home import Home
    from millstream.model.graph import Graph

_LAST = 1000


@dataclass(frozen=True, slots=True)
class SideView:
    """How good a model was on rows with labels."""

    model: str
    metrics: Mapping[str, float]
    """`accuracy` of classes; `MAE` and `RMSE` of numbers; none without labels."""
    better: int
    """On how many rows it alone was right, or nearer."""


@dataclass(frozen=True, slots=True)
class SpanView:
    """Two models on some rows."""

    rows: int
    """How many rows both have predicted."""
    labelled: int
    differ: int
    """On how many of all rows they predict something else."""
    sides: tuple[SideView, SideView]


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Two models on the rows that both have scored before they learnt them."""

    models: tuple[str, str]
    label: str | None
    all: SpanView
    last: SpanView
    """The last rows in event time."""

    @staticmethod
    def of(home: Home, graph: Graph | None, a: str, b: str, last: int = _LAST) -> ComparisonView:
        """Compare two models.

        Rows are the same if all columns are equal that the tables of both have. If a row came
        several times, it is compared as often as both have it.

        Args:
            home: Where the app is deployed.
            graph: What it declares: which column is the label.
            a: A model.
            b: Another.
            last: How many of the last rows are compared beside all.

        Raises:
            ARGUMENT_REFUSED: One is no model, or they have no event time or label in common.
        """
        for name in (a, b):
            check_model(home, graph, name)
        declared = {model.name: model for model in (graph.models if graph else ())}
        labels = {declared[name].label for name in (a, b) if name in declared}
        if len(labels) > 1:
            both = listed(tuple(sorted(map(str, labels))))
            raise _refused(a, b, f"models of one label, and these predict {both}")
        label = next(iter(labels), None)
        pairs = _Pairs(home, a, b, label, declared[a].event_time if a in declared else None)
        return ComparisonView((a, b), label, pairs.span(None), pairs.span(last))


class _Pairs:
    """The rows that two models have scored, side by side."""

    def __init__(self, home: Home, a: str, b: str, label: str | None, time: str | None) -> None:
        import duckdb
        from deltalake import DeltaTable

        self._names, self._label = (a, b), label
        self._duck = duckdb.connect()
        tables = [DeltaTable(str(home.table(name))).to_pyarrow_dataset() for name in (a, b)]
        kinds: list[dict[str, Any]] = [{f.name: f.type for f in t.schema} for t in tables]
        shared = [n for n in kinds[0] if n not in OWN and kinds[1].get(n) == kinds[0][n]]
        times = [n for n in shared if str(kinds[0][n]).startswith("timestamp")]
        if (time not in times and len(times) != 1) or (label and label not in shared):
            raise _refused(a, b, "models whose rows have the event time and the label in common")
        self._time = time if time in times else times[0]
        for view, table in zip("ab", tables, strict=True):
            self._duck.register(f"rows_{view}", table)
        of_b = {n: f"b.{_quoted(n)} IS NOT DISTINCT FROM a.{_quoted(n)}" for n in shared}
        of_b["n"] = "b.n = a.n"
        self._duck.execute(
            f"CREATE TABLE pairs AS SELECT a.{_quoted(self._time)} AS moment, "
            f"a.{PREDICTION} AS a, b.{PREDICTION} AS b, "
            f"{f'a.{_quoted(label)}' if label else 'NULL'} AS label "
            f"FROM ({_numbered('rows_a', shared)}) a JOIN ({_numbered('rows_b', shared)}) b "
            f"ON {' AND '.join(of_b.values())} "
            f"WHERE a.{PREDICTION} IS NOT NULL AND b.{PREDICTION} IS NOT NULL"
        )
        self._is_number = kinds[0][PREDICTION] in _floats()

    def span(self, last: int | None) -> SpanView:
        """Compare the last rows, or all."""
        rows = (
            "pairs" if last is None else f"(SELECT * FROM pairs ORDER BY moment DESC LIMIT {last})"
        )
        of_side = [self._of_side(*sides) for sides in (("a", "b"), ("b", "a"))]
        columns = ["count(*)", "count(label)", "count(*) FILTER (a IS DISTINCT FROM b)"]
        columns += [text for side in of_side for text in side.values()]
        found = self._duck.execute(f"SELECT {', '.join(columns)} FROM {rows}").fetchone() or ()
        values = iter(found[3:])
        sides = []
        for model, side in zip(self._names, of_side, strict=True):
            named = {name: next(values) for name in side}
            better = named.pop("better")
            known = {name: value for name, value in named.items() if value is not None}
            sides.append(SideView(model, known, better))
        return SpanView(found[0], found[1], found[2], (sides[0], sides[1]))

    def _of_side(self, side: str, other: str) -> dict[str, str]:
        """Return what is computed of a side, by name."""
        if not self._is_number:
            right = f"{side} = label"
            better = f"count(*) FILTER ({right} AND {other} IS DISTINCT FROM label)"
            return {"accuracy": f"avg(CAST({right} AS INTEGER))", "better": better}
        away = f"abs({side} - label)"
        return {
            "MAE": f"avg({away})",
            "RMSE": f"sqrt(avg({away} * {away}))",
            "better": f"count(*) FILTER ({away} < abs({other} - label))",
        }


def _numbered(rows: str, columns: Sequence[str]) -> str:
    """Return the scored rows, equal ones with numbers."""
    names = ", ".join(map(_quoted, columns))
    number = f"row_number() OVER (PARTITION BY {names} ORDER BY {LEARNT}) AS n"
    return f"SELECT {names}, {PREDICTION}, {number} FROM {rows} WHERE {KIND} = '{SCORED}'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _floats() -> tuple[Any, ...]:
    import pyarrow as pa

    return pa.float32(), pa.float64()


def _refused(a: str, b: str, expected: str) -> Exception:
    return fault("ARGUMENT_REFUSED", option="--compare", value=f"{a} {b}", expected=expected)
