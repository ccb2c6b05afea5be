"""How a model learns: rows in the order of event time, each scored before it is learnt.

A model is a function of the rows before a time. Which batch brought a row, and whether the batch
was tried twice, does not matter: rows wait until the watermark has passed them. A version is the
model as of a time; it is emitted with the rows, and so it is in the same commit.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.learn.columns import ROLLED_BACK, SCORED, VERSION
from millstream.learn.learner import Predictor, Scored, as_label
from millstream.learn.pickled import (
    canonical_bytes,
    digest_of,
    made_with,
    quick_bytes,
    read_model,
    repeatable,
)
from millstream.model.data_type import Atom
from millstream.model.duration import UNIX_EPOCH
from millstream.operators.state.calls import UNTIMED_US, raised_row
from millstream.operators.state.codec import StateCodec
from millstream.operators.state.parts import TurnResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.learn.learner import Recipe
    from millstream.model.state import KeyedState
    from millstream.operators.state.codec import KeyMemory
    from millstream.operators.state.raised_rows import RaisedRow
    from millstream.operators.state.rows import KeyedRows

STATE = (
    "model BINARY, measured BINARY, made_with STRING, learnt BIGINT, version_due BIGINT, "
    "returns BIGINT, kept BINARY"
)
"""What a checkpoint keeps of a model."""
_UNKNOWN = Scored(None, None)


class KeptModel(NamedTuple):
    """A model as it was at a time."""

    model: bytes | None
    """None if it had learnt nothing."""
    library: str | None
    learnt: int


@dataclass(frozen=True, slots=True)
class Return:
    """A model goes on from an earlier version of itself."""

    number: int
    to: str
    to_us: int
    """The version, as a name and as a time."""
    at_us: int
    """The event time after which it does."""
    models: Mapping[str, KeptModel] | None = None
    """The version of each key; None if models that come to that time keep it themselves."""


class RefusedRowError(Exception):
    """A row cannot be learnt; the text says why."""


@dataclass(frozen=True)
class Learning:
    """A model, and the rows of one key that it learns from."""

    recipe: Recipe
    declared: KeyedState
    keyed: KeyedRows
    every_us: int
    """How far apart versions are."""
    returns: tuple[Return, ...] = ()
    """To earlier versions, in their order."""

    @cached_property
    def codec(self) -> StateCodec:
        """Reads rows, and reads and writes memories."""
        return StateCodec(self.declared, self.keyed.key, self.keyed.columns)

    @cached_property
    def _features(self) -> Callable[[Any], Sequence[Any]]:
        names = self.recipe.features
        of_one = attrgetter(names[0])
        return attrgetter(*names) if names[1:] else lambda row: (of_one(row),)

    @cached_property
    def label_kind(self) -> str:
        """The type of predictions that are labels."""
        kinds = {field.name: field.type for field in self.keyed.columns.fields}
        kind = kinds.get(self.recipe.label or "")
        return kind.value if isinstance(kind, Atom) else "decimal"

    def turn(
        self, key: str, packed: bytes | None, rows: Sequence[tuple[Any, ...]], frontier_us: float
    ) -> TurnResult:
        """Learn the rows up to the frontier, or in a batch up to the last one."""
        to_us = frontier_us
        if not self.keyed.streams and frontier_us == math.inf:
            to_us = rows[0][2]
        with repeatable():
            return _ModelTurn(self, key, self.codec.unpack(packed)).run(rows, to_us)

    def points_after(self, number: int) -> list[tuple[int, int, Return]]:
        """Return the times at which a model is kept (0) or returned to (1), after a return."""
        to_come = [one for one in self.returns if one.number > number]
        points = [(one.to_us, 0, one) for one in to_come if one.models is None]
        points += [(one.at_us, 1, one) for one in to_come]
        return sorted(points, key=itemgetter(0, 1))

    def row(self, text: str) -> tuple[dict[str, Any], Any]:
        """Read the features and the label of a row.

        Raises:
            RefusedRowError: It cannot be learnt.
        """
        row, recipe = self.codec.row(text), self.recipe
        x = dict(zip(recipe.features, self._features(row), strict=True))
        for value in x.values():
            if value is None or (value.__class__ is float and not -math.inf < value < math.inf):
                raise RefusedRowError(why_not(x))
        y = getattr(row, recipe.label) if recipe.label else None
        if isinstance(y, float) and not math.isfinite(y):
            why = f"the label is {y}"
            raise RefusedRowError(why)
        if y is not None and recipe.classes and y not in recipe.classes:
            known = ", ".join(map(repr, recipe.classes))
            why = f"the label {y!r} is none of {known}"
            raise RefusedRowError(why)
        return x, y


class _ModelTurn:
    """One turn of one model."""

    def __init__(self, learning: Learning, key: str, memory: KeyMemory) -> None:
        self._learning, self._key, self._memory = learning, key, memory
        state: Any = memory.state
        self._state = state
        self._answers: list[tuple[Any, ...]] = []
        self._raised: list[RaisedRow] = []
        self._learnt_rows: list[tuple[Mapping[str, Any], Any]] = []
        """Since `_before`."""
        self._before: tuple[bytes | None, bytes | None] = (state.model, state.measured)
        self._is_open = False
        self._points = learning.points_after(state.returns or 0)

    def run(self, rows: Sequence[tuple[Any, ...]], to_us: float) -> TurnResult:
        memory = self._memory
        for us, text in sorted(row[:2] for row in rows):
            if us == UNTIMED_US:
                self._refuse(text, "its event time is null")
            else:
                memory.pending.append((us, text))
        ready = sorted(row for row in memory.pending if row[0] <= to_us)
        memory.pending = [row for row in memory.pending if row[0] > to_us]
        for us, text in ready:
            self._come_to(us)
            self._take(us, text)
        if self._state.version_due is not None and self._state.version_due <= to_us:
            self._come_to(self._state.version_due)
        if self._is_open:
            self._store()
        dues = [us for us, _ in memory.pending]
        dues += [due for due in (self._state.version_due,) if due is not None]
        packed = self._learning.codec.pack(memory)
        return TurnResult(packed, min(dues, default=None), self._answers, self._raised)

    def _take(self, us: int, text: str) -> None:
        """Score a row, and learn it; quarantine it if it cannot be."""
        try:
            x, y = self._learning.row(text)
        except MemoryError:
            raise  # it is not the row's fault
        except Exception as error:
            self._refuse(text, str(error) if isinstance(error, RefusedRowError) else error)
            return
        self._open()
        try:
            scored, drifts = self._step(x, y)
        except (ModuleNotFoundError, MemoryError):
            raise  # it is not the row's fault
        except Exception as error:
            # The learner may have learnt half of it.
            self._restore()
            self._refuse(text, error)
            return
        learnt = self._state.learnt or 0
        label = as_label(scored.prediction, self._learning.label_kind)
        if label is not scored.prediction:
            scored = scored._replace(prediction=label)
        self._answers.append(scored_row(text, us, scored, learnt, drifts=drifts))
        if y is not None or self._learning.recipe.label is None:
            self._learnt_rows.append((x, y))
            self._state.learnt = learnt + 1
            every = self._learning.every_us
            self._state.version_due = (us // every + 1) * every

    def _step(self, x: Mapping[str, Any], y: Any) -> tuple[Scored, bool]:
        """Score a row, measure it and have it learnt; without its label, it is only scored.

        Returns:
            What the model says of it, and whether the model drifts.
        """
        scored, drifts = self._predictor(x), False
        if self._learning.recipe.label is None:
            self._predictor.learn(x, None)
        elif y is not None:
            drifts = self._measured.update(y, scored)
            self._predictor.learn(x, y)
        return scored, drifts

    def _open(self) -> None:
        if not self._is_open:
            self._load()
            self._is_open = True

    def _load(self) -> None:
        packed, measured = self._before
        learning, declared = self._learning, self._learning.declared
        of, library = declared.name, self._state.made_with or ""
        learner, self._measured = learning.recipe.new(), learning.recipe.measured()
        if packed is not None:
            learner = read_model(packed, library, of=of, at=declared.at)
        if measured is not None:
            self._measured = read_model(measured, "", of=of, at=declared.at)
        self._predictor = Predictor(learner, learning.recipe.task, learning.recipe.is_yes_or_no)

    def _restore(self) -> None:
        """Go back to before the row: the learner learns again what it has learnt since then."""
        self._load()
        for x, y in self._learnt_rows:
            self._step(x, y)
        learner = self._predictor.learner
        self._state.made_with = made_with(learner)
        self._before = quick_bytes(learner), quick_bytes(self._measured)
        self._learnt_rows.clear()

    def _come_to(self, us: int) -> None:
        """Do what comes before the rows of a time: versions that are due, and returns to others."""
        # Rows of the time of a return are before it, as they are before the watermark.
        while self._points and self._points[0][0] <= us - self._points[0][1]:
            at_us, is_return, one = self._points.pop(0)
            self._keep_version(at_us)
            if is_return:
                self._return(one)
            else:
                self._keep_model(one)
        self._keep_version(us)

    def _keep_model(self, to: Return) -> None:
        """Keep the model as it is, to return to it later."""
        kept = self._kept_models()
        if to.number not in kept:
            if self._is_open:
                self._store()
            state = self._state
            kept[to.number] = KeptModel(state.model, state.made_with, state.learnt or 0)
            state.kept = quick_bytes(kept)

    def _kept_models(self) -> dict[int, KeptModel]:
        declared, kept = self._learning.declared, self._state.kept
        return read_model(kept, "", of=declared.name, at=declared.at) if kept else {}

    def _return(self, to: Return) -> None:
        """Go on from an earlier version: what was learnt and measured since is forgotten."""
        state, kept = self._state, self._kept_models()
        nothing = KeptModel(None, None, 0)
        found = kept.pop(to.number, nothing)
        if to.models is not None:
            found = to.models.get(self._key, nothing)
        state.model, state.made_with, state.learnt = found
        state.measured, state.version_due, state.returns = None, None, to.number
        state.kept = quick_bytes(kept) if kept else None
        self._before, self._is_open = (state.model, None), False
        self._learnt_rows.clear()
        known = (state.learnt, to.to, *(None,) * 5)
        self._answers.append((ROLLED_BACK, self._key, None, to.at_us, None, None, None, *known))

    def _store(self) -> None:
        """Write the model into the state."""
        self._state.model = quick_bytes(self._predictor.learner)
        self._state.measured = quick_bytes(self._measured)
        self._state.made_with = made_with(self._predictor.learner)

    def _keep_version(self, to_us: float) -> None:
        """Emit the version that is due."""
        due = self._state.version_due
        if due is None or due > to_us:
            return
        self._state.version_due = None
        self._open()
        packed = canonical_bytes(self._predictor.learner)
        overall, recent = (
            json.dumps(self._measured.values(metrics))
            for metrics in (self._measured.overall, self._measured.recent)
        )
        library = made_with(self._predictor.learner)
        known = (self._state.learnt, version_text(due), packed, digest_of(packed), library)
        self._answers.append(
            (VERSION, self._key, None, due, None, None, None, *known, overall, recent)
        )

    def _refuse(self, text: str, why: Exception | str) -> None:
        learning = self._learning
        self._raised.append(
            raised_row(learning.declared, text, why, tolerates=learning.keyed.tolerates)
        )


def version_text(us: int) -> str:
    """Name a version by the time up to which it has learnt; the order of texts is that of time.

    >>> version_text(1_767_268_800_000_000)
    '2026-01-01T12:00:00Z'
    """
    return f"{UNIX_EPOCH + timedelta(microseconds=us):%Y-%m-%dT%H:%M:%SZ}"


def scored_row(
    text: str,
    us: int,
    scored: Scored = _UNKNOWN,
    learnt: int | None = None,
    *,
    drifts: bool | None = None,
) -> tuple[Any, ...]:
    """Return the answer for a row."""
    score = scored.score if scored.score is None else float(scored.score)
    of_version = (None,) * 6
    return (SCORED, None, text, us, _text(scored.prediction), score, drifts, learnt, *of_version)


def _text(prediction: Any) -> str | None:
    """Write a prediction as Spark casts it from text."""
    if prediction is None:
        return None
    return str(prediction).lower() if isinstance(prediction, bool) else str(prediction)


def why_not(x: Mapping[str, Any]) -> str:
    """Return which feature cannot be learnt from."""
    for name, value in x.items():
        if value is None:
            return f"the feature {name!r} is null"
        if isinstance(value, float) and not math.isfinite(value):
            return f"the feature {name!r} is {value}"
    raise AssertionError
