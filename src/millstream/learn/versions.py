"""The versions of a model: which there are, and which one a query scores with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import closest, listed
from millstream.learn.columns import KIND, NAME, PREDICTION, VERSION
from millstream.learn.pickled import check_digest, read_model
from millstream.learn.rows import MODEL, recipe_of, rows_alone
from millstream.learn.score import Chosen, refused
from millstream.learn.scoring import PARTS, Versioned
from millstream.learn.stored import (
    BROUGHT,
    NONE,
    named_version,
    placed_rollbacks,
    read_versions,
    stored_versions,
    used_versions,
)
from millstream.operators.build_context import build_context
from millstream.operators.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location
    from millstream.lake.rollback import Rollback
    from millstream.model.dataset import Model


@dataclass(frozen=True, slots=True)
class ModelReference(Reference):
    """The versions of a model, read again when there is a new one."""

    key: tuple[str, ...]
    pinned: str | None
    schema: StructType
    rollbacks: Path | None = None
    """The folder that says to which versions the model was rolled back."""

    @property
    def is_delta(self) -> bool:
        """Whether the rows have versions of their own."""
        return True

    def version(self, read_at_s: float = 0.0) -> str:
        """Return the newest version, or the one that is always used."""
        del read_at_s
        if self.pinned is not None:
            return self.pinned
        names: list[Any] = stored_versions(self.path or "", [NAME]).column(NAME).to_pylist()
        count = len(self._placed)
        return f"{max(names, default=NONE)}{f' {count}' if count else ''}"

    @property
    def _placed(self) -> tuple[Rollback, ...]:
        return placed_rollbacks(self.rollbacks)

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
        """Return the version of each key that is in use up to a version, with its bytes.

        Raises:
            SCORE_REFUSED: There is no such version.
            MODEL_UNREADABLE: Its bytes are not those that were committed.
        """
        version, _, count = version.partition(" ")
        if version == NONE:
            return []
        path, names = self.path or "", [*self.key, NAME]
        stored = stored_versions(path, names).to_pylist()
        known = sorted({row[NAME] for row in stored})
        if version not in known:
            raise _unknown(self.name, version, known, self.at)
        placed = self._placed
        if self.pinned is None:
            placed = placed[: int(count or 0)]
        used = used_versions(stored, self.key, version, placed, is_pinned=self.pinned is not None)
        columns = (NAME, *BROUGHT)
        return read_versions(path, self.key, used, columns, of=self.name, at=self.at)


def _unknown(model: str, version: str, known: Sequence[str], at: Location) -> Exception:
    """Refuse a version that does not exist."""
    has = f"it has {listed(tuple(known))}" if known else "it has none"
    return refused(at, f"{model} has no version {version}: {closest(version, known)}{has}")


def _version_asked(version: str, at: Location) -> str:
    if (named := named_version(version)) is None:
        raise refused(at, f"version={version!r} is no time such as '2026-01-01 12:00'")
    return named


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
    """Return the version in use of each key, or the pinned one: of a stream, from what it keeps."""
    from pyspark.sql.types import BinaryType, StringType, StructType

    context, spark = build_context(), table.sparkSession
    decided = context.options.models if context else None
    rollbacks = decided / model.name if decided is not None else None
    schema = StructType([table.schema[name] for name in model.key])
    for name in PARTS:
        schema = schema.add(name, BinaryType() if name == PARTS.bytes else StringType())
    if not table.isStreaming:
        return _versions_of_batch(model, table, pinned, rollbacks, at).toDF(*schema.names)
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
        rollbacks=rollbacks,
    )
    bound = context.bound_rows(reference)
    return reference.rows(spark) if bound is None else bound


def _versions_of_batch(
    model: Model, table: DataFrame, pinned: str | None, rollbacks: Path | None, at: Location
) -> DataFrame:
    """Return the version in use of each key, or the pinned one, from the rows of the table."""
    from pyspark.sql import functions as F

    from millstream.operators.columns import quoted

    versions = table.where(F.col(KIND) == VERSION)
    if pinned is not None:
        known = [str(row[0]) for row in versions.select(NAME).distinct().sort(NAME).collect()]
        # There is none where `check` builds a query without rows.
        if known and pinned not in known:
            name = f"model {model.name}"
            raise _unknown(name, pinned, known, at)
        versions = versions.where(F.col(NAME) <= pinned)
    keys = [*map(quoted, model.key)]
    if placed := placed_rollbacks(rollbacks):
        names = versions.select(*keys, NAME)
        stored = [row.asDict() for row in names.collect()]
        last = max((row[NAME] for row in stored), default=NONE)
        used = used_versions(stored, model.key, last, placed, is_pinned=pinned is not None)
        chosen = [(*of, name) for of, name in used.items()]
        in_use = table.sparkSession.createDataFrame(chosen, names.schema)
        versions = versions.join(F.broadcast(in_use), [*model.key, NAME], "left_semi")
    newest = F.max_by(F.struct(NAME, *BROUGHT), NAME).alias("newest")
    newest_of = versions.groupBy(*keys).agg(newest).where("newest IS NOT NULL")
    return newest_of.select(*keys, "newest.*")
