"""How a model learns slices: all rows between two multiples of `every` at once, when none is late.

A slice is scored by the model before it, then learnt: its statistics are computed on all
partitions and merged in the driver, or by the driver alone if its rows are few. Statistics are
exact sums, so both give the same model. Its rows and its version are in one commit.
"""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from millstream.learn.columns import VERSION
from millstream.learn.exact import LARGEST, totals_of
from millstream.learn.learning import (
    Learning,
    RefusedRowError,
    scored_row,
    version_text,
)
from millstream.learn.merging import Slice, is_merging
from millstream.learn.pickled import canonical_bytes, digest_of, made_with, read_model
from millstream.learn.score import Chosen, scored
from millstream.learn.scoring import Aside, Scores
from millstream.learn.stored import last_until
from millstream.learn.taught import LEARNER, ROWS, Taught
from millstream.model.duration import UNIX_EPOCH
from millstream.operators.columns import quoted
from millstream.operators.state.calls import UNTIMED_US, raised_row
from millstream.operators.state.parts import TurnResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from millstream.learn.exact import Sums
    from millstream.learn.learner import Recipe
    from millstream.model.dataset import Model

FEW = 20_000
"""Up to so many rows of a batch are summed up in the driver: a job would take longer."""
_SLICE, _OWN = "_millstream_slice", "_millstream_label"


class Waiting(Learning):
    """Rows that wait until their slice is complete."""

    def turn(
        self, key: str, packed: bytes | None, rows: Sequence[tuple[Any, ...]], frontier_us: float
    ) -> TurnResult:
        """Emit the rows of complete slices; in a batch over all rows, every row."""
        del key
        memory, answers, raised = self.codec.unpack(packed), list[Any](), list[Any]()
        waiting = [*memory.pending, *(row[:2] for row in rows)]
        memory.pending = []
        for us, text in sorted(waiting):
            end = (us // self.every_us + 1) * self.every_us
            try:
                if us != UNTIMED_US and end > frontier_us:
                    memory.pending.append((us, text))
                else:
                    self._check(us, text)
                    answers.append(scored_row(text, us))
            except MemoryError:
                raise  # it is not the row's fault
            except Exception as error:
                why = str(error) if isinstance(error, RefusedRowError) else error
                tolerates = self.keyed.tolerates
                raised.append(raised_row(self.declared, text, why, tolerates=tolerates))
        first = min((us for us, _ in memory.pending), default=None)
        due = None if first is None else (first // self.every_us + 1) * self.every_us
        return TurnResult(self.codec.pack(memory), due, answers, raised)

    def _check(self, us: int, text: str) -> None:
        if us == UNTIMED_US:
            why = "its event time is null"
            raise RefusedRowError(why)
        x, y = self.row(text)
        for name, value in (*x.items(), (self.recipe.label, y)):
            if isinstance(value, int | float) and abs(value) > LARGEST:
                why = f"{name!r} is {value}, which is too large to be added up"
                raise RefusedRowError(why)


@dataclass(frozen=True)
class Slices:
    """Completes the rows of a model's table: scores them, learns them, adds versions."""

    model: Model
    recipe: Recipe
    time: str
    every_us: int
    stored: Path | None = None
    """The table, which has the versions of earlier batches; None in a batch over all rows."""
    is_whole: bool = False
    """Whether it is a batch over all rows, in which the last slice may not be complete."""

    def __call__(self, rows: DataFrame) -> DataFrame:
        """Return rows with what the model said of them, and its versions."""
        from pyspark.sql import functions as F

        # The rows of a batch of a stream can be computed once only. Others are computed again when
        # they are written, and with them those that are quarantined.
        if self.stored is not None:
            rows = rows.localCheckpoint()
        us = F.unix_micros(quoted(self.time))
        label = quoted(self.model.label) if self.model.label else F.lit(None)
        number = F.floor(us / F.lit(self.every_us)).cast("bigint").alias(_SLICE)
        features = [quoted(name) for name in self.recipe.features]
        order = [us.alias("us")] if not is_merging(self.recipe.new()) else []
        table = rows.select(number, *order, *features, label.alias(_OWN)).persist()
        try:
            counts = sorted(tuple(row) for row in table.groupBy(_SLICE).count().collect())
            if not counts:
                return rows
            last_us = rows.agg(F.max(us)).head()[0] if self.is_whole else math.inf  # type: ignore[index]
            course = _Course(self, table, self._known(counts[0][0]))
            course.learn(counts, last_us)
        finally:
            table.unpersist()
        versions = rows.sparkSession.createDataFrame(course.versions(rows.columns), rows.schema)
        return self._scored(rows, course).unionByName(versions)

    def _known(self, first: int) -> tuple[Taught, int, int | None]:
        """Return the model before a slice, how many rows it has learnt, and when it ended."""
        due = version_text(first * self.every_us)
        found = last_until(self.stored, due) if self.stored is not None else None
        if found is None:
            new = self.recipe.new()
            return Taught(new if is_merging(new) else None, {}), 0, None
        name, learnt, packed, library = found
        taught = read_model(packed, library, of=self.model.name, at=self.model.at)
        end = datetime.fromisoformat(name)
        return taught, learnt, (end - UNIX_EPOCH) // timedelta(microseconds=self.every_us)

    def _scored(self, rows: DataFrame, course: _Course) -> DataFrame:
        from pyspark.sql import functions as F

        number = F.floor(F.unix_micros(quoted(self.time)) / F.lit(self.every_us)).cast("bigint")
        kind = rows.schema["prediction"].dataType
        bare = rows.drop("prediction", "score").withColumn(_SLICE, number)
        by_slice = BySlice(self.recipe.features, tuple(course.scoring.items()))
        found = scored(Chosen(bare, by_slice, kind, (_SLICE,)), Aside(), self.model.at)
        named = found.withColumn("_learnt", F.col("version").cast("bigint")).drop("version")
        return named.withColumn("_drift", F.lit(False)).select(rows.columns)


class _Course:
    """The slices of a batch, learnt one after the other."""

    def __init__(self, of: Slices, table: DataFrame, known: tuple[Taught, int, int | None]) -> None:
        self._of, self._table = of, table
        self._taught, self._learnt, self._ended = known
        self.scoring: dict[int, tuple[bytes, int]] = {}
        """By slice, the model that scores it, and how many rows that has learnt."""
        self._versions: list[dict[str, Any]] = []

    def learn(self, counts: Sequence[tuple[Any, ...]], last_us: float) -> None:
        """Learn the slices that are complete."""
        few = None
        if sum(count for _, count in counts) <= FEW:
            few = dict(tuple(_frame(self._table.toArrow()).groupby(_SLICE)))
        packed = canonical_bytes(self._taught)
        for number, _ in counts:
            self.scoring[number] = packed, self._learnt
            if (number + 1) * self._of.every_us > last_us:
                continue
            rows = few[number] if few is not None else None
            if (totals := self._totals(number, rows)) and totals.get((ROWS,)):
                packed = self._keep(number, totals, rows)

    def versions(self, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the versions as rows of the table."""
        return [tuple(one.get(name) for name in columns) for one in self._versions]

    def _totals(self, number: int, rows: pd.DataFrame | None) -> dict[Any, Fraction]:
        summed = partial(_summed, self._taught, self._of.recipe)
        if rows is not None:
            return totals_of([summed(rows)])
        of_slice = self._table.where(quoted(_SLICE) == number)
        parts = of_slice.mapInArrow(partial(_summed_parts, summed), "sums BINARY").collect()
        return totals_of(pickle.loads(row.sums) for row in parts)

    def _keep(self, number: int, totals: Mapping[Any, Fraction], rows: Any) -> bytes:
        """Learn a slice, and keep the version after it."""
        of, count = self._of, int(totals[(ROWS,)])
        since = number + 1 - self._ended if self._ended is not None else 1
        learner = of.recipe.new()
        if is_merging(learner):
            own = {name[1]: total for name, total in totals.items() if name[0] == LEARNER}
            seconds = since * of.every_us / 1e6
            model = self._taught.model.after(own, Slice(count, seconds))
        else:
            if rows is None:
                rows = _frame(self._table.where(quoted(_SLICE) == number).toArrow())
            model = learner(self._taught.model, _in_order(rows, of.recipe))
        self._taught = self._taught.after(model, totals, of.recipe.window)
        self._learnt, self._ended = self._learnt + count, number + 1
        packed = canonical_bytes(self._taught)
        metrics, recent = self._taught.measured(of.recipe.metrics)
        due = (number + 1) * of.every_us
        self._versions.append(
            {
                of.time: UNIX_EPOCH + timedelta(microseconds=due),
                "_kind": VERSION,
                "_learnt": self._learnt,
                "_version": version_text(due),
                "_model": packed,
                "_digest": digest_of(packed),
                "_made_with": made_with(model),
                "_metrics": metrics,
                "_recent": recent,
            }
        )
        return packed


@dataclass(frozen=True, slots=True)
class BySlice:
    """Scores each row by the model before its slice."""

    features: tuple[str, ...]
    models: tuple[tuple[int, tuple[bytes, int]], ...]

    def score(self, rows: pd.DataFrame) -> Scores:
        """Score the rows of a batch of Arrow."""
        found, models = Scores.none(len(rows)), dict(self.models)
        for number, some in rows.groupby(_SLICE, sort=False):
            packed, learnt = models[int(number)]
            features = some[list(self.features)].infer_objects()
            said, scores = pickle.loads(packed).scores(features)
            for place, prediction, score in zip(some.index, said, scores, strict=True):
                found.put(place, prediction, score, str(learnt))
        return found


def _summed(taught: Taught, recipe: Recipe, rows: pd.DataFrame) -> Sums:
    """Sum up rows of a slice: those with a label, if there are labels."""
    y = None
    if recipe.label is not None:
        rows = rows[rows[_OWN].notna()]
        y = rows[_OWN].tolist()
        if recipe.is_yes_or_no:
            y = [bool(one) for one in y]
    return taught.sums(rows[list(recipe.features)].infer_objects(), y, recipe.task)


def _summed_parts(
    summed: partial[Sums], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        sums = pickle.dumps(summed(_frame(pa.Table.from_batches([batch]))))
        yield pa.RecordBatch.from_pydict({"sums": pa.array([sums], pa.binary())})


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)
    return frame


def _in_order(rows: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """Return labelled rows in the order of event time, then of their values."""
    label = [recipe.label] if recipe.label else []
    if label:
        rows = rows[rows[_OWN].notna()]
    ordered = rows.sort_values(["us", *recipe.features, *([_OWN] if label else [])])
    columns = ordered[[*recipe.features, *([_OWN] if label else [])]].reset_index(drop=True)
    return columns.set_axis([*recipe.features, *label], axis="columns").infer_objects()
