"""How records are read by a function of the user's, a batch at a time."""

from __future__ import annotations

import importlib
import traceback
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode.column import DAYS, MICROS, arrow_type
from millstream.landing.decode.fault import shown
from millstream.model.data_type import type_ddl
from millstream.spark.arguments import is_library

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.landing.decode.column import Column
    from millstream.model.data_type import Field
    from millstream.model.schema import Schema

REASON = "_reason"
"""The column in which a function says why a record is malformed."""

_NOT_OF_A_RECORD = (NameError, ImportError, OSError, MemoryError, NotImplementedError)
"""What says nothing of a record: it stops the source."""
_LONGEST = 200
_WITHIN = {"timestamp": (MICROS, pa.int64()), "date32": (DAYS, pa.int32())}
_FAMILIES: tuple[Callable[[Any], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
    pa.types.is_timestamp,
    pa.types.is_date,
)
_WIDER = ((0, 1), (0, 2), (7, 6))
"""From which family to which other one values are converted."""


class ReturnedError(TypeError):
    """What a function returned is not one row for each record, with the columns of the schema."""


def function_of(parse: object) -> Callable[[pa.RecordBatch], object]:
    """Return the function that is meant; a text names it as `module:function`.

    Raises:
        ValueError: There is no such function.
    """
    if not isinstance(parse, str):
        return cast("Callable[[pa.RecordBatch], object]", parse)
    from pyspark import cloudpickle

    name, _, wanted = parse.partition(":")
    try:
        module = importlib.import_module(name)
        found = getattr(module, wanted)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(str(error)) from error
    if not is_library(module.__file__ or ""):
        # A worker on another machine does not have the file.
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return cast("Callable[[pa.RecordBatch], object]", found)


class ParseReader:
    """Reads records by a function; what it raises for a record alone makes that one malformed."""

    is_text = False

    def __init__(self, schema: Schema, function: Callable[[pa.RecordBatch], object]) -> None:
        self._fields, self._function = schema.fields, function
        self._name = getattr(function, "__name__", type(function).__name__)

    def read_batch(self, records: Column) -> tuple[Sequence[Column], dict[int, str]]:
        """Read records; null ones are not passed on."""
        rows = np.flatnonzero(cast("Any", records.is_valid()))
        given = pa.RecordBatch.from_arrays([records.drop_null()], ["value"])
        faults: dict[int, str] = {}
        columns, _ = self._read(given, 0, faults)
        whole = np.full(len(records), -1)
        whole[rows] = np.arange(len(rows))
        whole[rows[sorted(faults)]] = -1
        order: Any = pa.array(whole, mask=whole < 0)
        found = [column.take(order) for column in columns]
        return found, {int(rows[row]): reason for row, reason in faults.items()}

    def _read(
        self, records: pa.RecordBatch, first: int, faults: dict[int, str]
    ) -> tuple[Sequence[Column], bool]:
        """Call the function; if it raises, for each half, down to the records alone.

        Return the columns, and whether it raised for a record.
        """
        if not records.num_rows:
            return self._columns(pa.table({}), 0, first, faults), False
        try:
            returned = self._function(records)
        except Exception as error:
            if isinstance(error, _NOT_OF_A_RECORD):
                raise
            if records.num_rows == 1:
                faults[first] = _raised(error)
                return self._columns(pa.table({}), 1, first, faults), True
            half = records.num_rows // 2
            left, in_left = self._read(records.slice(0, half), first, faults)
            right, in_right = self._read(records.slice(half), first + half, faults)
            if not (in_left or in_right):
                # It raises for records together that it reads one by one: it is wrong itself.
                raise
            return [pa.concat_arrays(pair) for pair in zip(left, right, strict=True)], True
        table = self._checked(returned, records.num_rows)
        return self._columns(table, records.num_rows, first, faults), False

    def _checked(self, returned: object, rows: int) -> pa.Table:
        """Return rows as a table.

        Raises:
            ReturnedError: They are not one for each record, or have other columns.
        """
        if isinstance(returned, pa.RecordBatch):
            returned = pa.Table.from_batches([returned])
        if not isinstance(returned, pa.Table):
            self._refuse(f"{type(returned).__name__}, not a pyarrow RecordBatch or Table")
        if returned.num_rows != rows:
            self._refuse(f"{returned.num_rows} rows for {rows} records")
        known = [field.name for field in self._fields]
        if unknown := [n for n in returned.column_names if n not in (*known, REASON)]:
            self._refuse(f"column {unknown[0]!r}; the schema has {', '.join(known)}")
        return returned

    def _columns(
        self, table: pa.Table, rows: int, first: int, faults: dict[int, str]
    ) -> Sequence[Column]:
        if REASON in table.column_names:
            for row, reason in enumerate(table.column(REASON).to_pylist(), first):
                if reason is not None:
                    faults[row] = str(reason)
        return [self._column(field, table, rows, first, faults) for field in self._fields]

    def _column(
        self, field: Field, table: pa.Table, rows: int, first: int, faults: dict[int, str]
    ) -> Column:
        """Give one column the type of the schema; what does not fit is malformed."""
        wanted: Any = arrow_type(field.type)
        place = f"in column {field.name!r}"
        column: Any = pa.nulls(rows, wanted)
        if field.name in table.column_names:
            column = _whole(table.column(field.name))
            if not _is_convertible(column.type, wanted):
                self._refuse(f"{column.type} {place}, which is {type_ddl(field.type)}")
            column, unfit = _converted(column, wanted)
            for row, value in unfit.items():
                why = f"{value} does not fit {type_ddl(field.type)}, {place}"
                faults.setdefault(first + row, why)
        if not field.nullable:
            for row in np.flatnonzero(column.is_null()).tolist():
                faults.setdefault(first + row, f"missing required value, {place}")
        return cast("Column", column)

    def _refuse(self, returned: str) -> NoReturn:
        message = f"{self._name} returned {returned}"
        raise ReturnedError(message)


def _whole(column: Any) -> Any:
    found: Any = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found


def _is_convertible(given: Any, wanted: Any) -> bool:
    if given == wanted or pa.types.is_null(given) or pa.types.is_nested(wanted):
        return pa.types.is_null(given) or pa.types.is_nested(given) == pa.types.is_nested(wanted)
    pairs = {(i, i) for i in range(len(_FAMILIES))} | {*_WIDER}
    return any(_FAMILIES[i](given) and _FAMILIES[j](wanted) for i, j in pairs)


def _converted(column: Any, wanted: Any) -> tuple[Any, dict[int, str]]:
    """Convert a column; return the values that do not fit, by row, which are null in it."""
    try:
        return _fitting(column, wanted), {}
    except (pa.ArrowInvalid, OverflowError):
        found, unfit = [], dict[int, str]()
    for row in range(len(column)):
        try:
            found.append(_fitting(column.slice(row, 1), wanted))
        except (pa.ArrowInvalid, OverflowError):
            unfit[row] = shown(column[row])
            found.append(pa.nulls(1, wanted))
    return pa.concat_arrays(found), unfit


def _fitting(column: Any, wanted: Any) -> Any:
    """Convert a column.

    Raises:
        ArrowInvalid, OverflowError: A value does not fit.
    """
    # A fraction of a microsecond is cut off, as in all formats.
    cut = pa.types.is_timestamp(column.type) and pa.types.is_timestamp(wanted)
    narrow = pa.types.is_floating(column.type) and pa.types.is_floating(wanted)
    found = column.cast(wanted, safe=not (cut or narrow))
    for name, (bounds, counted) in _WITHIN.items():
        if str(wanted).startswith(name):
            least, greatest = pc.min_max(found.cast(counted)).values()
            if least.is_valid and not bounds[0] <= least.as_py() <= greatest.as_py() <= bounds[1]:
                raise OverflowError
    return found


def _raised(error: Exception) -> str:
    """Write what a function raised, and the line of the user's that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_ours(f.filename)]
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:_LONGEST]}{where}"


def _is_ours(file: str) -> bool:
    return file == __file__ or is_library(file)
