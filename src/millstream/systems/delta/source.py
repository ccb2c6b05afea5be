"""Rows appended to a Delta table of anyone's."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.model.codec import Codec
from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.errors import Location, MillstreamError


@dataclass(frozen=True, slots=True)
class Delta:
    """Rows of a Delta table, from its first version on; rows changed or deleted there stop it."""

    path: str
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Spark's own, such as startingVersion, maxFilesPerTrigger or skipChangeCommits."""

    @property
    def schema(self) -> Any:
        """What the table says."""
        from deltalake import DeltaTable
        from pyspark.sql.types import StructType

        if not self._is_there:
            return "value STRING"
        return StructType.fromJson(json.loads(DeltaTable(revealed(self.path)).schema().to_json()))

    @property
    def codec(self) -> Codec:
        """Rows are typed already."""
        return Codec("rows")

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A path without a Delta table."""
        if not self._is_there:
            yield fault("DELTA_MISSING", at=at, source=source, path=self.path)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Nothing more to try: the table was looked at."""

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the table as a stream."""
        from pyspark.sql import functions as F

        path = os.path.abspath(revealed(self.path))
        options = {name: revealed(value) for name, value in self.options.items()}
        rows = spark.readStream.format("delta").options(**options).load(path)
        # Delta's stream does not say which file a row is from.
        nowhere = F.lit(None).cast("long")
        return rows.select("*", F.lit(path).alias("_origin"), nowhere.alias("_position"))

    @property
    def _is_there(self) -> bool:
        return os.path.isdir(os.path.join(self.path, "_delta_log"))
