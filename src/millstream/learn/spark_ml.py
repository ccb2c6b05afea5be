"""Fitted pipelines of Spark ML, applied to rows by Spark itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.operators.columns import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_PROBABILITY = "probability"


def is_spark_ml(model: object) -> bool:
    """Return whether a model is fitted by Spark ML."""
    ml = sys.modules.get("pyspark.ml")
    return ml is not None and isinstance(model, ml.Transformer)


def transformed(
    rows: DataFrame, model: Any, version: str, kind: DataType, own: Sequence[str]
) -> DataFrame:
    """Add `prediction`, `score` and `version` to rows; other columns of a pipeline are dropped.

    Args:
        rows: With the features.
        model: A fitted model or pipeline.
        version: What the rows are to say.
        kind: The type of predictions.
        own: The columns of rows that are kept.
    """
    from pyspark.ml.functions import vector_to_array

    found = model.transform(rows)
    last = model.stages[-1] if hasattr(model, "stages") else model
    prediction = F.col(_column(last, "predictionCol", "prediction")).cast(kind)
    score = F.lit(None).cast("double")
    probability = _column(last, "probabilityCol", _PROBABILITY)
    if probability in found.columns:
        chances = vector_to_array(F.col(probability))
        is_yes_or_no = kind.typeName() == "boolean"
        score = F.get(chances, F.lit(1)) if is_yes_or_no else F.array_max(chances)
    said = (prediction.alias("prediction"), score.alias("score"), F.lit(version).alias("version"))
    result: DataFrame = found.select(*map(quoted, own), *said)
    return result


def _column(stage: Any, parameter: str, usual: str) -> str:
    """Return the column that a parameter of a stage names."""
    return str(stage.getOrDefault(parameter)) if stage.hasParam(parameter) else usual
