"""Functions on the rows of a frame as Arrow, whatever its columns are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.model.data_type import quoted_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame


def map_in_arrow(
    frame: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """Apply a function to batches of rows, as `DataFrame.mapInArrow`.

    That one reads `a.b` as a field of `a`, and refuses other names.
    """
    from pyspark.sql import DataFrame, functions as F
    from pyspark.sql.pandas.functions import pandas_udf
    from pyspark.util import PythonEvalType

    make: Any = pandas_udf
    udf = make(function, returnType=schema, functionType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    columns = udf(*(F.col(quoted_name(name)) for name in frame.columns))
    in_barrier, profile = False, None
    jdf = frame._jdf.mapInArrow(columns._jc, in_barrier, profile)
    return DataFrame(jdf, frame.sparkSession)
