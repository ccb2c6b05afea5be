"""A batch on its way into a table: written once by Spark, counted and hashed on the way."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Observation, functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType, MapType, StructType

from millstream.lake.files import DataFile, count_rows
from millstream.lake.parquet import WRITTEN, writer
from millstream.model.data_type import quoted_name
from millstream.model.sketch import is_ordered
from millstream.spark.arrow import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyarrow import RecordBatch
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class Staged:
    """What Spark wrote for one batch, before anything of it is committed."""

    files: tuple[DataFile, ...]
    seen: Mapping[str, int]
    """What was counted while the rows were written."""
    digest: str

    @property
    def rows(self) -> int:
        """Number of rows written."""
        return count_rows(self.files)

    def only(self, column: str, value: str) -> tuple[DataFile, ...]:
        """The files of one partition."""
        return tuple(file for file in self.files if file.partition[column] == value)


def observe(
    frame: DataFrame, counts: Mapping[str, Column], digested: Sequence[str]
) -> tuple[DataFrame, Observation]:
    """Count and hash rows in the same pass that writes them."""
    observation = Observation()
    hashable = [name for name in digested if _is_exact(frame.schema[name].dataType)]
    metrics = {name: F.count_if(condition) for name, condition in counts.items()}
    metrics["_rows"] = F.count(F.lit(1))
    metrics["_hash"] = F.bit_xor(F.xxhash64(*map(quoted_name, hashable))) if hashable else F.lit(0)
    columns = [metric.alias(name) for name, metric in metrics.items()]
    return frame.observe(observation, *columns), observation


def stage(
    frame: DataFrame,
    observation: Observation,
    into: Path,
    partition_by: Sequence[str] = (),
    transform: Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]] | None = None,
) -> Staged:
    """Write a batch into a folder outside any table; `transform` runs in the writing tasks."""
    empty(into)
    return write_staged(frame, observation, into, partition_by, transform)


def empty(folder: Path) -> None:
    """Remove what an earlier attempt has left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def write_staged(
    frame: DataFrame,
    observation: Observation,
    into: Path,
    partition_by: Sequence[str] = (),
    transform: Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]] | None = None,
) -> Staged:
    """Write a batch into a folder that is empty but for rows on which functions raised."""
    write = writer(str(into), partition_by, transform)
    rows = map_in_arrow(frame, write, WRITTEN).collect()
    files = tuple(DataFile.read(into / row["name"], json.loads(row["partition"])) for row in rows)
    seen = observation.get
    return Staged(files, _counts(seen), digest_of(seen))


def digest_without_writing(frame: DataFrame, observation: Observation) -> str:
    """Run a batch to the end, so that its state is kept, and write nothing."""
    frame.write.format("noop").mode("overwrite").save()
    return digest_of(observation.get)


def digest_of(seen: Mapping[str, int]) -> str:
    """Combine the number of rows and their hash."""
    return f"{seen['_rows']}:{(seen['_hash'] or 0) & 0xFFFFFFFFFFFFFFFF:016x}"


def _counts(seen: Mapping[str, int]) -> dict[str, int]:
    return {name: count or 0 for name, count in seen.items() if name not in ("_hash",)}


def _is_exact(kind: DataType) -> bool:
    # The last bit of a floating sum depends on the order of addition, some sketches on the order of
    # rows; maps cannot be hashed.
    if isinstance(kind, ArrayType):
        return _is_exact(kind.elementType)
    if isinstance(kind, StructType):
        return not is_ordered(kind.names) and all(
            _is_exact(field.dataType) for field in kind.fields
        )
    return not isinstance(kind, DoubleType | FloatType | MapType)
