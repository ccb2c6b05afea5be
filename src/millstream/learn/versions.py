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
from millstream.learn.score import PARTS, Chosen, Versioned, refused
from millstream.operators.build_context import build_context
from millstream.operators.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location
    from millstream.model.dataset import Model

_NONE = ""
_BROUGHT = (BYTES, LIBRARY, DIGEST)


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
        return spark.createDataFrame(self.chosen(version), self.schema)

    def chosen(self, version: str) -> list[tuple[Any, ...]]:
        """Return the last version of each key that is not later than a version, with its bytes.

        Raises:
            SCORE_REFUSED: There is no such version.
            MODEL_UNREADABLE: Its bytes are not those that were committed.
        """
        if version == _NONE:
            return []
        path, names = self.path or "", [*self.key, NAME]
        stored = _stored(path, names).to_pylist()
        known = sorted({row[NAME] for row in stored})
        if version not in known:
            raise _unknown(self.name, version, known, self.at)
        newest: dict[tuple[Any, ...], str] = {}
        for row in sorted(stored, key=lambda row: str(row[NAME])):
            if row[NAME] <= version:
                newest[tuple(row[name] for name in self.key)] = row[NAME]
        rows = []
        for row in _stored(path, [*names, *_BROUGHT], {*newest.values()}).to_pylist():
            key = tuple(row[name] for name in self.key)
            if newest.get(key) == row[NAME]:
                brought = [row[name] for name in _BROUGHT]
                check_digest(row[BYTES], row[DIGEST], of=self.name, at=self.at)
                rows.append((*key, row[NAME], *brought))
        return rows


def _unknown(model: str, version: str, known: Sequence[str], at: Location) -> Exception:
    """Refuse a version that does not exist."""
    has = f"it has {listed(tuple(known))}" if known else "it has none"
    return refused(at, f"{model} has no version {version}: {closest(version, known)}{has}")


def _version_asked(version: str, at: Location) -> str:
    try:
        moment = datetime.fromisoformat(version)
    except ValueError:
        raise refused(at, f"version={version!r} is no time such as '2026-01-01 12:00'") from None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def versions_of(path: Path, key: Sequence[str] = ()) -> tuple[ModelVersion, ...]:
    """List the versions that a table holds, the newest first; without Spark."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    names = (*key, NAME, LEARNT, METRICS, RECENT, LIBRARY, DIGEST)
    columns = {name: ds.field(name) for name in names}
    columns[BYTES] = pc.binary_length(ds.field(BYTES))
    found = [
        ModelVersion(
            row[NAME],
            json.dumps({name: row[name] for name in key}, default=str) if key else None,
            row[LEARNT],
            dict(row[METRICS] or ()),
            dict(row[RECENT] or ()),
            row[LIBRARY],
            row[DIGEST],
            row[BYTES],
        )
        for row in _stored(str(path), columns).to_pylist()
    ]
    return tuple(sorted(found, key=lambda one: (one.version, one.key or ""), reverse=True))


def is_model(path: Path) -> bool:
    """Return whether a table is that of a model."""
    from deltalake import DeltaTable

    names = [field.name for field in DeltaTable(str(path)).schema().fields]
    return {KIND, NAME, DIGEST} <= {*names}


def _stored(
    path: str, columns: list[str] | dict[str, Any], chosen: Collection[str] | None = None
) -> pa.Table:
    """Read columns of the versions that a table holds, or of those that are chosen."""
    # Slow to import, and only a command or a build that needs versions reads them.
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    rows = DeltaTable(path).to_pyarrow_dataset()
    wanted = ds.field(KIND) == VERSION
    if chosen is not None:
        wanted &= ds.field(NAME).isin(list(chosen))
    return rows.to_table(columns=columns, filter=wanted)


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
        return Chosen(joined, versioned, kind.dataType, PARTS)
    fixed = None
    for row in found.collect():
        fixed = (row[0], bytes(row[1]), row[2])
        # Here rather than in a task: what cannot be read is refused before a batch begins.
        check_digest(fixed[1], row[3], of=name, at=at)
        read_model(fixed[1], fixed[2] or "", of=name, at=at)
    versioned = Versioned(recipe.features, recipe.task, recipe.is_yes_or_no, name, at, fixed)
    return Chosen(rows, versioned, kind.dataType, ())


def _versions(model: Model, table: DataFrame, pinned: str | None, at: Location) -> DataFrame:
    """Return the newest version of each key, or the pinned one: of a stream, from what it keeps."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType, StringType, StructType

    from millstream.operators.columns import quoted

    schema = StructType([table.schema[name] for name in model.key])
    for name in PARTS:
        schema = schema.add(name, BinaryType() if name == PARTS.bytes else StringType())
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
        known = [str(row[0]) for row in versions.select(NAME).distinct().sort(NAME).collect()]
        name = f"model {model.name}"
        # There is none where `check` builds a query without rows.
        if known and pinned not in known:
            raise _unknown(name, pinned, known, at)
        versions = versions.where(F.col(NAME) <= pinned)
    newest = F.max_by(F.struct(NAME, *_BROUGHT), NAME).alias("newest")
    keys = [*map(quoted, model.key)]
    newest_of = versions.groupBy(*keys).agg(newest).where("newest IS NOT NULL")
    return newest_of.select(*keys, "newest.*").toDF(*schema.names)
