"""Columns that a Python function of the user's computes, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from millstream.declare.function import location_of_caller
from millstream.operators.fault import column_fault, option_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from millstream.errors import Location
    from millstream.operators.state.raised_rows import RaisedRow

_CALL = "ms.add_columns"
_ADDED = "_added"
_ON_ERROR = ("raise", "quarantine")


def add_columns(
    rows: DataFrame,
    function: Callable[[Any], object],
    columns: str,
    *,
    on_error: Literal["raise", "quarantine"] = "raise",
) -> DataFrame:
    """Add columns that a function computes from each row; the event time stays what it is.

    The function is called with one row at a time, whose columns are attributes, and returns a
    mapping, a sequence in the order of the columns, or the value itself if it is one column. The
    same row must give the same values: a batch that is retried computes them again.

    Args:
        rows: Of a stream or of a batch.
        function: Called in Spark's Python workers.
        columns: The names and types of what it returns, such as `"amount DOUBLE, rate DOUBLE"`.
        on_error: What becomes of a row that the function raises on, or returns the wrong types
            for. By default the query stops. With `quarantine`, the row goes into the quarantine of
            the table, with the trace; a serve has no quarantine, and stops.

    Raises:
        DeclarationError: The columns are not valid in Spark SQL, or are there already.
    """
    at = location_of_caller()
    import pyarrow as pa
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import BooleanType, StructField, StructType

    from millstream.operators.build_context import build_context
    from millstream.operators.columns import quoted
    from millstream.spark.session import share_python

    added = _added(rows, columns, on_error, at)
    context, name = build_context(), getattr(function, "__name__", "the function")
    aside, tolerates = None, False
    if on_error == "quarantine" and context is not None and not context.options.stops_if_raised:
        aside, tolerates = context.note_raising(name), True
    kind = pa.struct(list(to_arrow_schema(added)))
    compute = _Compute(function, name, kind, tolerates=tolerates, aside=aside)
    result = StructType([StructField("is_right", BooleanType()), StructField("values", added)])

    def run(batches: Iterator[pa.StructArray]) -> Iterator[pa.StructArray]:
        return compute(batches)

    share_python(rows.sparkSession)
    # By these types Spark calls it once for all batches of a task.
    run.__annotations__ = dict.fromkeys(("batches", "return"), Iterator[pa.Array])  # type: ignore[type-arg]
    functions: Any = F
    # Not deterministic, so that Spark computes it once: neither in a filter nor twice.
    computed = functions.arrow_udf(run, result).asNondeterministic()
    names = list(map(quoted, rows.columns))
    return (
        rows.withColumn(_ADDED, computed(F.struct(*names)))
        .where(F.col(f"{_ADDED}.is_right"))
        .select(*names, *(F.col(_ADDED)["values"][name].alias(name) for name in added.names))
    )


def _added(rows: DataFrame, columns: str, on_error: str, at: Location) -> StructType:
    """Read the columns that are added.

    Raises:
        DeclarationError: They are not columns, or are there already.
    """
    from pyspark.errors import PySparkException

    if on_error not in _ON_ERROR:
        instead = f"use one of {', '.join(_ON_ERROR)}"
        raise option_fault(_CALL, "on_error", on_error, why="not known", instead=instead, at=at)
    try:
        added = rows.sparkSession.createDataFrame([], columns).schema
    except PySparkException:
        why, instead = (
            "not columns with their types",
            'such as columns="amount DOUBLE, rate DOUBLE"',
        )
        raise option_fault(_CALL, "columns", columns, why=why, instead=instead, at=at) from None
    for name in added.names:
        if name in rows.columns:
            why = "which the rows have already: give what is added another name"
            raise column_fault(_CALL, name, why=why, columns=rows.columns, at=at)
    return added


@dataclass(frozen=True, slots=True)
class _Compute:
    """What runs in a worker of Spark's."""

    function: Callable[[Any], object]
    name: str
    type: pa.StructType
    tolerates: bool
    aside: str | None

    def __call__(self, batches: Iterator[pa.StructArray]) -> Iterator[pa.StructArray]:
        """Compute the columns of one task; at its end, write the rows that it raised on."""
        import pyarrow as pa
        from pyspark import TaskContext

        from millstream.operators.state.raised_rows import write_raised_rows

        raised: list[RaisedRow] = []
        for batch in batches:
            rows = cast("list[Any]", batch.to_pylist())  # type: ignore[misc]
            values = [self._tried(self._values, row, row, raised) for row in rows]
            try:
                packed = self._packed(values)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                # Some row has a value of another type: try each on its own.
                for number, row in enumerate(rows):
                    alone = [values[number]]
                    if self._tried(self._packed, alone, row, raised) is None:
                        values[number] = None
                packed = self._packed(values)
            right = pa.array([value is not None for value in values])
            yield pa.StructArray.from_arrays([right, packed], ["is_right", "values"])
        context = TaskContext.get()
        if raised and self.aside and context is not None:
            write_raised_rows(self.aside, f"rows-{context.partitionId()}", raised)

    def _tried(
        self, act: Callable[[Any], Any], value: Any, row: Any, raised: list[RaisedRow]
    ) -> Any | None:
        """Do something for a row; None if that raises and the row is quarantined."""
        from millstream.operators.state.calls import trace_of
        from millstream.operators.state.raised_rows import RaisedRow

        try:
            return act(value)
        except (ModuleNotFoundError, MemoryError):
            raise  # it is not the row's fault
        except Exception as error:
            if not self.tolerates:
                raise
            text = json.dumps(row, default=str, ensure_ascii=False)
            raised.append(RaisedRow(self.name, text, trace_of(error)))
            return None

    def _values(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        from pyspark.sql import Row

        returned, names = self.function(Row(**row)), [field.name for field in self.type]
        if isinstance(returned, Mapping):
            if unknown := [str(name) for name in returned if name not in names]:
                message = f"{self.name} returned {', '.join(unknown)}, which is not declared"
                raise TypeError(message)
            return {name: returned.get(name) for name in names}
        if len(names) == 1 and not isinstance(returned, tuple):
            return {names[0]: returned}
        if isinstance(returned, list | tuple):
            return dict(zip(names, returned, strict=True))
        message = f"{self.name} returned {type(returned).__name__} for {len(names)} columns"
        raise TypeError(message)

    def _packed(self, values: Sequence[Any]) -> pa.Array[Any]:
        import pyarrow as pa

        return pa.array(values, type=self.type)
