"""What a user selects of a match: columns of its key and of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
)

from millstream.errors import Location, fault
from millstream.operators.patterns.condition import (
    NotAConditionError,
    aggregates,
    path_of,
    read_list,
    step_references,
)
from millstream.spark.message import message_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType
    from sqlglot import exp

STEPS = "_steps"
_ROW = "_row"
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True, slots=True)
class MatchSelection:
    """The option `select`: columns of matches."""

    text: str
    at: Location
    steps: tuple[str, ...]
    """The steps that have rows to select from."""

    def columns(self, known: Collection[str]) -> tuple[str, ...]:
        """Return the columns of rows that are needed, of those there are."""
        from sqlglot import exp

        found: set[str] = set()
        for column in self._parsed().find_all(exp.Column):
            path = path_of(column)
            if path[0] in self.steps:
                found |= {path[1]} if len(path) > 1 and path[1] != "*" else set(known)
        folded = {name.lower() for name in found}
        return tuple(name for name in known if name.lower() in folded)

    def of(self, matches: DataFrame, rows: DataFrame) -> DataFrame:
        """Select from matches, whose rows by step are arrays in one column.

        Args:
            matches: What was found.
            rows: The rows it was found in, for the types of their columns.

        Raises:
            SELECT_REFUSED: It is not a list of columns, or Spark refuses it.
        """
        query = self._parsed()
        folded: dict[str, str] = {}
        for call in [*query.find_all(*aggregates())]:
            if step_references(call, self.steps):
                name = f"_fold{len(folded)}"
                folded[name] = self._fold(call, rows)
                _replace(call, name)
        try:
            last = {s: F.expr(f"try_element_at({STEPS}.`{s}`, -1)") for s in self.steps}
            ready = matches.withColumns(
                {**{name: F.expr(text) for name, text in folded.items()}, **last}
            )
            selected = ready.selectExpr(*(e.sql(dialect="spark") for e in query.expressions))
            names = [name.lower() for name in selected.columns]
        except PySparkException as error:
            self._refuse(message_of(error))
        if twice := next((name for name in names if names.count(name) > 1), None):
            self._refuse(f"it has two columns called {twice!r}: give one another name with AS")
        return selected

    def _parsed(self) -> exp.Select:
        try:
            query = read_list(self.text, "a list of columns")
        except NotAConditionError as error:
            self._refuse(str(error))
        from sqlglot import exp

        for expression in query.expressions:
            if isinstance(expression, exp.Star):
                self._refuse("* is no column: leave select out to have all of a match")
            if not expression.alias_or_name:
                self._refuse(f"{expression.sql(dialect='spark')} has no name")
        return query

    def _fold(self, call: exp.Expr, rows: DataFrame) -> str:
        """Return an aggregate over the rows of a step, in SQL over their array."""
        from sqlglot import exp

        name = aggregates()[type(call)]
        rendered = call.sql(dialect="spark")
        if len(steps := step_references(call, self.steps)) != 1:
            self._refuse(f"{rendered} is not over one step")
        array = f"{STEPS}.`{next(iter(steps))}`"
        if isinstance(call, exp.Count) and call.find(exp.Star):
            return f"CAST(size({array}) AS BIGINT)"
        inner = call.this.copy()
        try:
            kind = rows.select(F.expr(_of_row(inner, drop=True))).schema.fields[0].dataType
        except PySparkException as error:
            self._refuse(message_of(error))
        values = f"transform({array}, {_ROW} -> {_of_row(inner, drop=False)})"
        there = f"filter({values}, {_ROW} -> {_ROW} IS NOT NULL)"
        match name:
            case "count":
                return f"CAST(size({there}) AS BIGINT)"
            case "min" | "max":
                return f"array_{name}({values})"
            case "first" | "last":
                return f"try_element_at({values}, {1 if name == 'first' else -1})"
            case _:
                return self._total(name, there, kind, rendered)

    def _total(self, name: str, values: str, kind: DataType, rendered: str) -> str:
        if isinstance(kind, FloatType | DoubleType) or (
            isinstance(kind, _INTEGERS) and name == "avg"
        ):
            to = "DOUBLE"
        elif isinstance(kind, _INTEGERS):
            to = "BIGINT"
        elif isinstance(kind, DecimalType) and name == "sum":
            to = f"DECIMAL({min(38, kind.precision + 10)}, {kind.scale})"
        else:
            self._refuse(f"{rendered} is over {kind.simpleString()}")
        plus = f"CAST(_sum + {_ROW} AS {to})"
        total = f"aggregate({values}, CAST(0 AS {to}), (_sum, {_ROW}) -> {plus})"
        total = f"IF(size({values}) = 0, NULL, {total})"
        return total if name == "sum" else f"{total} / size({values})"

    def _refuse(self, why: str) -> NoReturn:
        raise fault("SELECT_REFUSED", at=self.at, select=self.text, why=why)


def _replace(call: exp.Expr, name: str) -> None:
    from sqlglot import exp

    call.replace(exp.column(name))


def _of_row(expression: exp.Expr, *, drop: bool) -> str:
    """Write an expression over the columns of one row instead of those of a step."""
    from sqlglot import exp

    def moved(node: Any) -> Any:
        if not isinstance(node, exp.Column):
            return node
        path = [part.name for part in node.parts][1:]
        first, *rest = path if drop else [_ROW, *path]
        column = exp.column(exp.to_identifier(first, quoted=True))
        fields = [exp.to_identifier(name, quoted=True) for name in rest]
        return exp.Dot.build([column, *fields]) if fields else column

    return str(expression.copy().transform(moved).sql(dialect="spark"))
