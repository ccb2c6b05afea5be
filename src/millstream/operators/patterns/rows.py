"""The rows that a pattern is looked for in, prepared by Spark: evaluated, filtered, encoded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    TimestampType,
)

from millstream.errors import MillstreamError, closest, fault, listed
from millstream.operators.columns import quoted
from millstream.operators.event_time import WATERMARK
from millstream.operators.patterns.program import compared_columns, compared_paths
from millstream.operators.patterns.refusal import pattern_fault
from millstream.operators.patterns.tie import can_order, tie_of
from millstream.operators.state.buckets import KEY
from millstream.operators.state.row_text import JSON, WITH_NULLS, as_key, unkept
from millstream.spark.message import message_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location
    from millstream.operators.patterns.condition import Condition, Path
    from millstream.operators.patterns.evaluate import Digits, Kind
    from millstream.operators.patterns.pattern import Pattern, Variable

_KINDS: dict[type[DataType], Kind] = {
    ByteType: "integer",
    ShortType: "integer",
    IntegerType: "integer",
    LongType: "integer",
    DoubleType: "double",
    FloatType: "float",
    DecimalType: "decimal",
    StringType: "string",
    BooleanType: "boolean",
    TimestampType: "timestamp",
    DateType: "date",
}
READ_AS: dict[Kind, str] = {
    "timestamp": "unix_micros({})",
    "date": "unix_date({})",
    "decimal": "CAST({} AS STRING)",
    "float": "CAST({} AS DOUBLE)",
}
"""How values are read that JSON cannot represent."""


@dataclass(frozen=True, slots=True)
class SearchedRows:
    """Rows, and the pattern that is looked for in them."""

    rows: DataFrame
    pattern: Pattern
    time: str

    @staticmethod
    def at(rows: DataFrame, pattern: Pattern) -> SearchedRows:
        """Find the columns a pattern needs.

        Raises:
            PATTERN_COLUMN: The key, the event time or `tie_by` is not among the columns, or
                rows cannot be ordered by it.
            PATTERN_TIME: There are several timestamps, or none.
            PATTERN_UNBOUNDED: The rows are a stream without a watermark.
        """
        columns = rows.columns
        for option, names in (("key", pattern.key), ("tie_by", pattern.tie_by)):
            for name in names:
                if name not in columns:
                    why = "which the rows do not have"
                    raise _unfit_column(option, name, why, columns, pattern.at)
        for name in pattern.tie_by:
            kind = rows.schema[name].dataType
            if not can_order(kind):
                why = f"which is {kind.simpleString()}: use whole numbers, text, times or booleans"
                raise _unfit_column("tie_by", name, why, columns, pattern.at)
        time = _time(rows, pattern)
        if rows.isStreaming and WATERMARK not in (rows.schema[time].metadata or {}):
            raise fault("PATTERN_UNBOUNDED", at=pattern.at, column=time)
        return SearchedRows(rows, pattern, time)

    def check(self, carried: Sequence[str], times: Sequence[str], at: Location) -> None:
        """Check that a match can carry the columns, and that steps have other names.

        Args:
            carried: The columns that are kept for the answer.
            times: What the times of a match are called.
            at: The line of the user.

        Raises:
            PATTERN_REFUSED: A step is called as a column, or as a time of a match.
            PATTERN_COLUMN: A column cannot be kept in the state of a stream, or the key is
                called as a time of a match.
        """
        columns = self.rows.columns
        known = {name.lower() for name in columns}
        for name in self.pattern.names:
            if name.lower() in known:
                raise pattern_fault("name_of_a_column", got=name, at=self.pattern.at)
            if name.lower() in times:
                raise pattern_fault("name_of_a_time", got=name, at=self.pattern.at)
        for name in self.pattern.key:
            if name.lower() in times:
                why = "which is a time of every answer: rename the column first"
                raise _unfit_column("key", name, why, columns, at)
        for name in (*self.pattern.key, *carried):
            if bad := next(unkept(self.rows.schema[name].dataType), None):
                why = f"which is {bad.simpleString()}: a match cannot keep that"
                raise _unfit_column("column", name, why, columns, at)

    def kinds(self) -> dict[Path, Kind]:
        """Return the types of the columns that are compared between rows.

        Raises:
            CONDITION_REFUSED: There is no such column, or its type cannot be compared exactly.
        """
        return {path: _KINDS[type(kind)] for path, kind in self._types().items()}

    def digits(self) -> dict[Path, Digits]:
        """Return the digits of the decimals that are compared between rows."""
        types = self._types().items()
        return {p: (k.precision, k.scale) for p, k in types if isinstance(k, DecimalType)}

    def _types(self) -> dict[Path, DataType]:
        found: dict[Path, DataType] = {}
        for path in compared_columns(self.pattern):
            variable, condition = self._user_of(path)
            try:
                kind = self.rows.select(_column(path)).schema.fields[0].dataType
            except PySparkException as error:
                raise _refused(variable, condition, message_of(error)) from error
            if type(kind) not in _KINDS:
                why = f"{'.'.join(path)} is {kind.simpleString()}, which is not compared with steps"
                raise _refused(variable, condition, why)
            found[path] = kind
        return found

    def prepared(self, carried: Sequence[str]) -> DataFrame:
        """Evaluate the conditions, leave out rows that meet none, and encode the others.

        Raises:
            CONDITION_REFUSED: Spark refuses a condition, or it is not boolean.
        """
        kinds = self.kinds()
        values = [_column(path, kind).alias(str(n)) for n, (path, kind) in enumerate(kinds.items())]
        keeps_all = any(step.is_strict for step in self.pattern.steps)
        judged = self.rows.select(
            as_key(self.rows, self.pattern.key).alias(KEY),
            F.unix_micros(quoted(self.time)).alias("us"),
            self._mask().alias("mask"),
            (F.to_json(F.struct(*map(quoted, carried)), JSON) if carried else F.lit("{}")).alias(
                "text"
            ),
            (F.to_json(F.struct(*values), WITH_NULLS) if values else F.lit("{}")).alias("compared"),
            tie_of(self.rows, self.pattern.tie_by).alias("tie"),
        )
        # Spark moves a filter that does not look at the event time below the watermark, which rows
        # that are left out would then not move.
        return judged.where("us IS NOT NULL" if keeps_all else "mask <> us - us")

    def _mask(self) -> Column:
        bits = [
            F.when(self._alone(variable, condition), F.lit(1 << number)).otherwise(F.lit(0))
            for number, (variable, condition) in enumerate(self.pattern.parsed())
        ]
        return reduce(lambda one, other: one.bitwiseOR(other), bits).cast("bigint")

    def _alone(self, variable: Variable, condition: Condition) -> Column:
        if condition.alone is None:
            return F.lit(True)
        text = condition.text if condition.compared is None else condition.alone.sql("spark")
        try:
            kind = self.rows.select(F.expr(text)).schema.fields[0].dataType
        except PySparkException as error:
            raise _refused(variable, condition, message_of(error)) from error
        if not isinstance(kind, BooleanType | NullType):
            raise _refused(variable, condition, f"it is {kind.simpleString()}, not boolean")
        return F.expr(text)

    def _user_of(self, path: Path) -> tuple[Variable, Condition]:
        """Return the condition that compares a column, and its variable."""
        return next(
            (variable, condition)
            for variable, condition in self.pattern.parsed()
            if path in compared_paths(self.pattern, condition)
        )


def _time(rows: DataFrame, pattern: Pattern) -> str:
    times = [f.name for f in rows.schema.fields if isinstance(f.dataType, TimestampType)]
    if pattern.event_time is None:
        if len(times) != 1:
            raise fault("PATTERN_TIME", at=pattern.at, count=len(times), candidates=listed(times))
        return times[0]
    if pattern.event_time not in times:
        raise _unfit_column(
            "event_time",
            pattern.event_time,
            "which is not a TIMESTAMP of the rows",
            rows.columns,
            pattern.at,
        )
    return pattern.event_time


def _column(path: Path, kind: Kind | None = None) -> Column:
    name = ".".join(f"`{part.replace('`', '``')}`" for part in path)
    return F.expr(READ_AS[kind].replace("{}", name) if kind in READ_AS else name)


def _unfit_column(
    option: str, column: str, why: str, columns: Sequence[str], at: Location
) -> MillstreamError:
    return fault(
        "PATTERN_COLUMN",
        at=at,
        option=option,
        column=column,
        why=why,
        nearest=closest(column, columns),
        columns=listed(columns),
    )


def _refused(variable: Variable, condition: Condition, why: str) -> MillstreamError:
    return fault(
        "CONDITION_REFUSED", at=variable.at, step=variable.name, condition=condition.text, why=why
    )
