"""The versions of a model: which there are, and which one a query scores with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.errors import closest, listed
from millstream.learn.learning import VERSION
from millstream.learn.pickled import check_digest, read_model
from millstream.learn.rows import (
    BYTES,
    DIGEST,
    KIND,
    LEARNT,
    LIBRARY,
    METRICS,
    MODEL,
    NAME,
    PREDICTION,
    RECENT,
    recipe_of,
    rows_alone,
)
from millstream.learn.score import Chosen, Versioned, refused
from millstream.operators.build_context import build_context
from millstream.operators.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location
    from millstream.model.dataset import Model

_NONE = ""
_PARTS = ("version", "bytes", "library")
"""What a version brings to the rows that it scores."""


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """A version of a model."""

    version: str
    """The time up to which it has learnt all rows."""
    key: str | None
    """Of a model that learns for each key."""
    learnt: int
    """How many rows it has learnt."""
    metrics: dict[str, float | None]
    recent: dict[str, float | None]
    """The same over the last rows."""
    made_with: str
    digest: str
    size: int
    """How many bytes it has."""


@dataclass(frozen=True, slots=True)
class ModelReference(Reference):
    """The versions of a model, read again when there is a new one."""

    key: tuple[str, ...]
    pinned: str | None
    schema: StructType

    @property
    def is_delta(self) -> bool:
        """Whether the rows have versions of their own."""
        return True

    def version(self, read_at_s: float = 0.0) -> str:
        """Return the newest version, or the one that is always used."""
        del read_at_s
        if self.pinned is not None:
            return self.pinned
        names: list[Any] = _stored(self.path or "", [NAME]).column(NAME).to_pylist()
        return max(names, default=_NONE)

    def rows(self, spark: SparkSession) -> DataFrame:
        """Read the newest version of each key."""
        return self.rows_of(spark, self.version())

    def rows_of(self, spark: SparkSession, version: str) -> DataFrame:
        """Read the last version of each key that is not later than a version.

        Raises:
            SCORE_REFUSED: There is no such version.
            MODEL_UNREADABLE: Its bytes are not those that were committed.
        """
        columns = [*self.key, NAME, BYTES, DIGEST, LIBRARY]
        stored = _stored(self.path or "", columns).to_pylist() if version != _NONE else []
        known = sorted({row[NAME] for row in stored})
        if version != _NONE and version not in known:
            nearest = closest(version, known)
            why = f"{self.name} has no version {version}: {nearest}it has {listed(tuple(known))}"
            raise refused(self.at, why)
        newest: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in sorted(stored, key=lambda row: str(row[NAME])):
            if row[NAME] <= version:
                newest[tuple(row[name] for name in self.key)] = row
        rows = []
        for key, row in newest.items():
            check_digest(row[BYTES], row[DIGEST], of=self.name, at=self.at)
            rows.append((*key, row[NAME], row[BYTES], row[LIBRARY]))
        return spark.createDataFrame(rows, self.schema)


def _version_asked(version: str, at: Location) -> str:
    try:
        moment = datetime.fromisoformat(version)
    except ValueError:
        raise refused(at, f"version={version!r} is no time such as '2026-01-01 12:00'") from None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def versions_of(path: Path, key: Sequence[str] = ()) -> tuple[ModelVersion, ...]:
    """List the versions that a table holds, the newest first; without Spark."""
    columns = [*key, NAME, LEARNT, METRICS, RECENT, LIBRARY, DIGEST, BYTES]
    found = [
        ModelVersion(
            row[NAME],
            json.dumps({name: row[name] for name in key}, default=str) if key else None,
            row[LEARNT],
            dict(row[METRICS] or ()),
            dict(row[RECENT] or ()),
            row[LIBRARY],
            row[DIGEST],
            len(row[BYTES]),
        )
        for row in _stored(str(path), columns).to_pylist()
    ]
    return tuple(sorted(found, key=lambda one: (one.version, one.key or ""), reverse=True))


def is_model(path: Path) -> bool:
    """Return whether a table is that of a model."""
    from deltalake import DeltaTable

    names = [field.name for field in DeltaTable(str(path)).schema().fields]
    return {KIND, NAME, DIGEST} <= {*names}


def _stored(path: str, columns: Sequence[str]) -> pa.Table:
    """Read columns of the versions that a table holds."""
    # Slow to import, and only a command or a build that needs versions reads them.
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    rows = DeltaTable(path).to_pyarrow_dataset()
    return rows.to_table(columns=list(columns), filter=ds.field(KIND) == VERSION)


def with_versions(rows: DataFrame, model: DataFrame, version: str | None, at: Location) -> Chosen:
    """Choose the versions of a model that rows are scored with.

    Raises:
        SCORE_REFUSED: It is no model, or has no such version.
        MODEL_UNREADABLE: Another version of its library wrote it, or its bytes are damaged.
    """
    kind = model.schema[PREDICTION] if PREDICTION in model.columns else None
    name = (kind.metadata or {}).get(MODEL) if kind is not None else None
    context = build_context()
    if kind is None or name is None or context is None or name not in context.models:
        raise refused(at, "the second DataFrame is no model that the function reads")
    declared, table = context.models[name]
    recipe, _ = recipe_of(declared, rows_alone(table))
    pinned = _version_asked(version, at) if version is not None else None
    found = _versions(declared, table, pinned, at)
    versioned = Versioned(recipe.features, recipe.task, recipe.is_yes_or_no, name, at)
    if declared.key:
        joined = rows.join(found, list(declared.key), "left")
        return Chosen(joined, versioned, kind.dataType, _PARTS)
    fixed = next(((row[0], bytes(row[1]), row[2]) for row in found.collect()), None)
    if fixed is not None:
        # Here rather than in a task: what cannot be read is refused before a batch begins.
        read_model(fixed[1], fixed[2] or "", of=name, at=at)
    versioned = Versioned(recipe.features, recipe.task, recipe.is_yes_or_no, name, at, fixed)
    return Chosen(rows, versioned, kind.dataType, ())


def _versions(model: Model, table: DataFrame, pinned: str | None, at: Location) -> DataFrame:
    """Return the newest version of each key, or the pinned one: of a stream, from what it keeps."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType, StringType, StructType

    from millstream.operators.columns import quoted

    schema = StructType([table.schema[name] for name in model.key])
    for name, kind in zip(_PARTS, (StringType(), BinaryType(), StringType()), strict=True):
        schema = schema.add(name, kind)
    context, spark = build_context(), table.sparkSession
    if table.isStreaming:
        folder = context.options.tables if context else None
        if context is None or folder is None:
            return spark.createDataFrame([], schema)
        reference = ModelReference(
            name=f"model {model.name} {pinned or ''}".strip(),
            path=str(folder / model.name),
            read=lambda spark: spark.createDataFrame([], schema),
            every=None,
            at=at,
            key=model.key,
            pinned=pinned,
            schema=schema,
        )
        bound = context.bound_rows(reference)
        return reference.rows(spark) if bound is None else bound
    versions = table.where(F.col(KIND) == VERSION)
    if pinned is not None:
        versions = versions.where(F.col(NAME) <= pinned)
    newest = F.max_by(F.struct(NAME, BYTES, LIBRARY), NAME).alias("newest")
    keys = [*map(quoted, model.key)]
    newest_of = versions.groupBy(*keys).agg(newest).where("newest IS NOT NULL")
    return newest_of.select(*keys, "newest.*").toDF(*schema.names)
