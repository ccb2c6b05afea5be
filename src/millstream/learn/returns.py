"""Returns of a model to earlier versions, as its rows come to them: in a batch and in a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from millstream.lake.rollback import place_rollback, read_rollbacks
from millstream.learn.columns import BYTES, LEARNT, LIBRARY
from millstream.learn.learning import KeptModel, Return
from millstream.learn.rows import by_key
from millstream.learn.stored import placed_rollbacks, versions_kept
from millstream.operators.build_context import build_context
from millstream.operators.reference import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.lake.rollback import Rollback
    from millstream.model.dataset import Model


_KEPT = (BYTES, LIBRARY, LEARNT)


@dataclass(frozen=True, slots=True)
class AskedReturns(Reference):
    """How many returns were asked for: a stream is built again, between two batches, for more."""

    @property
    def is_delta(self) -> bool:
        """Whether the rows have versions of their own."""
        return True

    def version(self, read_at_s: float = 0.0) -> str:
        """Return how many there are."""
        del read_at_s
        return str(len(read_rollbacks(self.folder)))

    @property
    def folder(self) -> Path:
        """Where they are written down."""
        from pathlib import Path

        return Path(self.path or "")

    def rows_of(self, spark: SparkSession, version: str) -> DataFrame:
        """Return a row for each."""
        return spark.range(int(version))


def returns_of(model: Model, rows: DataFrame) -> tuple[Return, ...]:
    """Return when a model returned to which version, as far as rows come to it.

    In a stream, what was asked for since the last batch is placed in event time: after all rows
    that the model has learnt.
    """
    context = build_context()
    folder = context.options.models if context else None
    if context is None or folder is None:
        return ()
    folder = folder / model.name
    if not rows.isStreaming:
        return tuple(_return(one) for one in placed_rollbacks(folder))
    reached, tables = context.options.reached_us, context.options.tables
    asked = AskedReturns(f"returns of {model.name}", str(folder), _none, None, model.at)
    bound = context.bound_rows(asked)
    if bound is None or reached is None or tables is None:
        return ()
    known = read_rollbacks(folder)[: bound.count()]
    placed: list[Rollback] = []
    after = 0
    for one in known:
        # Not before another: a new checkpoint begins with no watermark.
        at_us = max(reached(), one.to_us, after) if one.at_us is None else one.at_us
        placed.append(one if one.at_us == at_us else place_rollback(folder, one, at_us))
        after = at_us
    return tuple(_with_models(model, rows, one, placed, tables / model.name) for one in placed)


def _none(spark: SparkSession) -> DataFrame:
    return spark.range(0)


def _return(rollback: Rollback) -> Return:
    return Return(rollback.number, rollback.to, rollback.to_us, rollback.at_us or 0)


def _with_models(
    model: Model, rows: DataFrame, rollback: Rollback, all_: list[Rollback], table: Path
) -> Return:
    """Return a rollback with what each key goes on from, if the table has the version."""
    before = tuple(one for one in all_ if one.number < rollback.number)
    kept = versions_kept(table, model, rollback.to, before, _KEPT)
    placed = _return(rollback)
    if kept is None:
        return placed
    schema = StructType([rows.schema[name] for name in model.key])
    for name, kind in zip(_KEPT, (BinaryType(), StringType(), LongType()), strict=True):
        schema = schema.add(name, kind)
    frame = rows.sparkSession.createDataFrame(kept, schema)
    found = by_key(model, frame, _KEPT).collect()
    models = {row[0]: KeptModel(bytes(row[1]), row[2], row[3]) for row in found}
    return Return(placed.number, placed.to, placed.to_us, placed.at_us, models)
