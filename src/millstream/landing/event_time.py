"""The event time of a source that is computed: in Arrow if the expression is simple, else by Spark.

Whatever it fails on, or gives no time for, is null: the row is malformed and the query goes on.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode.column import MICROS, arrow_type
from millstream.model.data_type import Atom, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column as SparkColumn, SparkSession

    from millstream.model.data_type import Type
    from millstream.model.schema import Schema

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_CONVERT = "org.apache.spark.sql.classic.ExpressionUtils"

_MOMENT = arrow_type(Atom.TIMESTAMP)
PART = r"(?:`(?:[^`]|``)+`|[A-Za-z_]\w*)"
"""A name in a path to a field."""
_PATH = rf"(?P<path>{PART}(?:\s*\.\s*{PART})*)"
_CALL = re.compile(rf"\s*(?P<name>[a-z_]+)\s*\(\s*{_PATH}\s*\)\s*", re.IGNORECASE | re.ASCII)
_CAST = re.compile(rf"\s*cast\s*\(\s*{_PATH}\s+as\s+timestamp\s*\)\s*", re.IGNORECASE | re.ASCII)
_FIELD = re.compile(rf"\s*{_PATH}\s*", re.ASCII)

_INTEGERS = (Atom.TINYINT, Atom.SMALLINT, Atom.INT, Atom.BIGINT)
_FLOATS = (Atom.FLOAT, Atom.DOUBLE)
_MOMENTS = (Atom.DATE, Atom.TIMESTAMP, Atom.TIMESTAMP_NTZ)
_UNITS_US = {
    "timestamp_seconds": 1_000_000,
    "timestamp_millis": 1_000,
    "timestamp_micros": 1,
    "cast": 1_000_000,
}


def in_arrow(expression: str, schema: Schema) -> Callable[[pa.RecordBatch], Any] | None:
    """Make the function that computes a simple expression for a batch; None if it is not simple."""
    for pattern in (_CALL, _CAST, _FIELD):
        if found := pattern.fullmatch(expression):
            names, kind = path_of(found["path"], schema)
            compute = _computation(found.groupdict().get("name"), kind) if kind else None
            if pattern is _FIELD and kind is not Atom.TIMESTAMP:
                return None
            return _of(names, compute) if compute else None
    return None


def in_spark(expression: str, right: SparkColumn) -> SparkColumn:
    """Make the column that computes any expression where a condition is true.

    Spark evaluates what an expression has twice ahead of it, out of reach of `TryEval`; it does
    not do so with what stands under a condition.
    """
    from pyspark import SparkContext
    from pyspark.sql import Column, functions as F

    context = SparkContext._active_spark_context
    assert context is not None
    jvm: Any = context._jvm
    convert = getattr(jvm, _CONVERT)
    guarded: Any = F.when(right, F.expr(expression))
    tried = getattr(jvm, f"{_EXPRESSIONS}.TryEval")(convert.expression(guarded._jc))
    return Column(convert.column(tried))


def columns_read(expression: str, schema: Schema, spark: SparkSession) -> list[str]:
    """Return the columns of a record that an expression reads."""
    records: Any = spark.createDataFrame([], schema.with_nulls().to_ddl()).selectExpr(expression)
    read = records._jdf.queryExecution().analyzed().references().toSeq()
    names = {read.apply(number).name() for number in range(read.size())}
    return [name for name in schema.names if name in names]


def is_legacy(spark: SparkSession) -> bool:
    """Return whether Spark reads times by the rules that it had before version 3."""
    return str(spark.conf.get("spark.sql.legacy.timeParserPolicy")).upper() == "LEGACY"


def within_years(column: Any) -> Any:
    """Make null what lies in years that Spark, Delta and Python do not share."""
    return _moment(_bounded(_moment(column).cast(pa.int64()), *MICROS))


def _computation(name: str | None, kind: Type) -> Callable[[Any], Any] | None:
    """Return what a function, or a cast if it has no name, does with a column of a type."""
    name = "cast" if name is None else name.lower()
    if kind in _INTEGERS and name in _UNITS_US:
        return partial(_counted, unit_us=_UNITS_US[name])
    if kind in _FLOATS and name in ("timestamp_seconds", "cast"):
        return _measured
    return _moment if kind in _MOMENTS and name == "cast" else None


def column_at(names: Sequence[str]) -> Callable[[pa.RecordBatch], Any]:
    """Make the function that takes the column, or field of a column, at a path."""
    first, *fields = names

    def column(batch: pa.RecordBatch) -> Any:
        found: Any = batch.column(first)
        return pc.struct_field(found, fields) if fields else found

    return column


def _of(names: Sequence[str], compute: Callable[[Any], Any]) -> Callable[[pa.RecordBatch], Any]:
    column = column_at(names)
    return lambda batch: compute(column(batch))


def path_of(text: str, schema: Schema) -> tuple[Sequence[str], Type | None]:
    """Return the names of a path and the type of what it leads to; None if that is nothing.

    Spark ignores case, too; such a path is left to it.
    """
    names = [_plain(part) for part in re.findall(PART, text)]
    kind: Type = Struct(schema.fields)
    for name in names:
        fields = kind.fields if isinstance(kind, Struct) else ()
        found = next((field.type for field in fields if field.name == name), None)
        if found is None:
            return names, None
        kind = found
    return names, kind


def _plain(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _moment(column: Any) -> Any:
    return column.cast(_MOMENT)


def _counted(column: Any, unit_us: int) -> Any:
    numbers = column.cast(pa.int64())
    bounds = (MICROS[0] // unit_us, MICROS[1] // unit_us)
    return _moment(pc.multiply(_bounded(numbers, *bounds), pa.scalar(unit_us)))


def _measured(column: Any) -> Any:
    micros: Any = pc.multiply(column.cast(pa.float64()), pa.scalar(1e6))
    found: Any = pc.trunc(_bounded(micros, *map(float, MICROS)))
    return _moment(found.cast(pa.int64()))


def _bounded(column: Any, least: float, greatest: float) -> Any:
    """Make null what is out of bounds."""
    low, high = pa.scalar(least, column.type), pa.scalar(greatest, column.type)
    inside = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
    return pc.if_else(inside, column, pa.scalar(None, column.type))
