"""Whether Spark can plan a stream: it checks some rules only as it plans the second batch."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.build.build import query_line
from millstream.build.refusal import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from millstream.errors import MillstreamError
    from millstream.model.dataset import Serve, Table

# By whole names: asked for part by part, Java looks for every part in every jar.
OUTPUT_MODES = "org.apache.spark.sql.streaming.OutputMode"
_STREAMING = "org.apache.spark.sql.execution.streaming"
_EXECUTION = f"{_STREAMING}.runtime.IncrementalExecution"
_WATERMARKS = f"{_STREAMING}.runtime.PropagateWatermarkSimulator"
_OFFSETS = f"{_STREAMING}.checkpointing.OffsetSeqMetadata"
_DEFAULT = "$lessinit$greater$default$"
"""How Scala names the default of a constructor's parameter, by its position."""


def plan_faults(dataset: Table | Serve, frame: DataFrame, mode: str) -> Iterator[MillstreamError]:
    """Find what Spark refuses as it plans the second batch of a query, which has a watermark.

    Say a watermark that is defined twice, or an operator that finds two event times.
    """
    with tempfile.TemporaryDirectory(prefix="millstream-plan-") as checkpoint:
        try:
            _plan(frame, mode, Path(checkpoint))
        except PySparkException as error:
            yield refused(dataset.name, error, query_line(error, dataset.at))


def _plan(frame: DataFrame, mode: str, checkpoint: Path) -> None:
    session = frame.sparkSession
    jvm: Any = session.sparkContext._jvm
    execution, offsets = getattr(jvm, _EXECUTION), getattr(jvm, _OFFSETS)
    watermark_ms = now_ms = 1
    # Operators that keep state of their own look for the batch that is planned.
    (checkpoint / "offsets").mkdir()
    (checkpoint / "offsets" / "0").touch()
    execution(
        session._jsparkSession,
        frame._jdf.queryExecution().analyzed(),
        getattr(getattr(jvm, OUTPUT_MODES), mode.capitalize())(),
        (checkpoint / "state").as_uri(),
        jvm.java.util.UUID.randomUUID(),
        jvm.java.util.UUID.randomUUID(),
        0,
        getattr(jvm, "scala.Option").empty(),
        offsets(watermark_ms, now_ms, getattr(offsets, f"{_DEFAULT}3")()),
        getattr(jvm, _WATERMARKS)(),
        True,  # noqa: FBT003 - Spark's constructor has no names
        *(getattr(execution, f"{_DEFAULT}{place}")() for place in (12, 13, 14, 15)),
    ).executedPlan()
