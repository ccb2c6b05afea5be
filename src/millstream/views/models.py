"""The models of an app: their versions, how good they are, what drifted, what scores with them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed
from millstream.lake.reference_data import ReferenceData
from millstream.lake.rollback import ask_for_rollback, read_rollbacks
from millstream.learn.stored import (
    ModelVersion,
    drifts_of,
    is_model,
    named_version,
    version_read,
    versions_of,
)
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import EventRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from millstream.lake.home import Home
    from millstream.lake.rollback import Rollback
    from millstream.model.dataset import Model
    from millstream.model.graph import Graph

_BOUND = re.compile(r"model (?P<model>\w+)(?: (?P<pinned>\S+))? \(\d+\)")
"""How the versions that a query scores with are named among its reference data."""
ROLLED_BACK = "model_rolled_back"
"""The event of history."""


@dataclass(frozen=True, slots=True)
class ScorerView:
    """A query that scores rows with a model."""

    query: str
    version: str | None
    """The one that its last batch used; None if there was none yet."""
    is_pinned: bool
    """Whether it always uses that one."""


@dataclass(frozen=True, slots=True)
class DriftView:
    """A row at which a detector saw a change."""

    at: datetime
    learnt: int
    """How many rows the model had learnt."""
    key: str | None = None


@dataclass(frozen=True, slots=True)
class RollbackView:
    """A return to an earlier version."""

    model: str
    to: str
    asked_at: datetime
    after: datetime | None
    """The event time after which it counts; None until a driver does it."""

    @staticmethod
    def of(model: str, asked: Rollback) -> RollbackView:
        """Show one."""
        after = None if asked.at_us is None else _moment(asked.at_us / 1_000_000)
        return RollbackView(model, asked.to, _moment(asked.asked_at), after)


@dataclass(frozen=True, slots=True)
class ModelView:
    """A model, and its versions from the newest on."""

    name: str
    versions: tuple[ModelVersion, ...]
    key: tuple[str, ...] = ()
    """Of a model that learns for each key."""
    drifts: tuple[DriftView, ...] = ()
    """From the latest on."""
    scorers: tuple[ScorerView, ...] = ()
    rollbacks: tuple[RollbackView, ...] = ()
    """In the order in which they were asked for."""

    @property
    def in_use(self) -> tuple[ModelVersion, ...]:
        """The version that is in use, of each key."""
        return tuple(version for version in self.versions if version.state == "in use")


@dataclass(frozen=True, slots=True)
class ModelStandingView:
    """A model at a glance; over all keys, if it learns for each key."""

    name: str
    version: str | None
    """The newest in use; None before the first."""
    models: int
    """One, or as many as there are keys with a version."""
    learnt: int
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Over all rows; of models of keys, the mean by rows learnt."""
    recent: Mapping[str, float | None] = field(default_factory=dict)
    """The same over the last rows."""
    drifts: int = 0
    drifted_at: datetime | None = None
    """The event time of the last one."""

    @staticmethod
    def of(view: ModelView) -> ModelStandingView:
        """Sum up a model."""
        used = view.in_use
        return ModelStandingView(
            view.name,
            max((one.version for one in used), default=None),
            len(used),
            sum(one.learnt for one in used),
            _means([(one.learnt, one.metrics) for one in used]),
            _means([(one.learnt, one.recent) for one in used]),
            len(view.drifts),
            max((one.at for one in view.drifts), default=None),
        )


@dataclass(frozen=True, slots=True)
class ModelsView:
    """The models of a home."""

    home: str
    models: tuple[ModelView, ...]

    @staticmethod
    def of(home: Home, graph: Graph | None, name: str | None = None) -> ModelsView:
        """Show the versions of all models, or of one.

        Raises:
            ARGUMENT_REFUSED: There is no such model.
        """
        home.verify_in_use()
        known = check_model(home, graph, name)
        shown = (_shown(home, graph, model) for model in known if name in (None, model))
        return ModelsView(str(home.path), tuple(shown))

    @property
    def standing(self) -> tuple[ModelStandingView, ...]:
        """Each at a glance."""
        return tuple(map(ModelStandingView.of, self.models))


def standing_models(
    home: Home, graph: Graph | None, names: Collection[str]
) -> Iterator[ModelStandingView]:
    """Return the models among some tables, at a glance."""
    for name in names:
        if name in home.tables and is_model(home.table(name)):
            yield ModelStandingView.of(_shown(home, graph, name))


def check_model(home: Home, graph: Graph | None, name: str | None) -> list[str]:
    """Return the models of a home.

    Raises:
        ARGUMENT_REFUSED: There is none of this name.
    """
    tables = [m.name for m in graph.models if m.name in home.tables] if graph else home.tables
    known = [table for table in tables if is_model(home.table(table))]
    if name is not None and name not in known:
        expected = f"a model of the home: {closest(name, known)}{listed(tuple(known))}"
        raise fault("ARGUMENT_REFUSED", option="NAME", value=name, expected=expected)
    return known


def roll_back(
    home: Home, graph: Graph | None, name: str, version: str, *, agreed: bool, by: str = ""
) -> RollbackView:
    """Have a model go on from an earlier version: the driver that runs does it, or the next one.

    Args:
        home: Where the app is deployed.
        graph: What it declares, if that is known.
        name: The model.
        version: The version, as it is named or as a time.
        agreed: Whether what has been learnt since may be forgotten.
        by: How it was asked for, to be recorded.

    Raises:
        ARGUMENT_REFUSED: There is no such model, or no such version.
        ROLLBACK_NOT_AGREED: Nobody has agreed.
    """
    home.verify_in_use()
    check_model(home, graph, name)
    view = _shown(home, graph, name)
    known = sorted({one.version for one in view.versions})
    ways = {model.name: model.way for model in graph.models} if graph else {}
    if ways.get(name, "rows") != "rows":
        # Its versions are what it goes on from, and each is a function of the one before.
        expected = "a model that learns row by row"
        raise fault("ARGUMENT_REFUSED", option="--roll-back", value=name, expected=expected)
    to = named_version(version)
    if to is None or to not in known:
        shown = listed(tuple(known[-5:])) if known else "it has none yet"
        expected = f"a version of {name}: {closest(to or version, known)}{shown}"
        raise fault("ARGUMENT_REFUSED", option="--roll-back", value=version, expected=expected)
    if not agreed:
        used = sum(one.learnt for one in view.in_use)
        kept: dict[str | None, int] = {}
        for one in view.versions:
            if one.version <= to:
                kept.setdefault(one.key, one.learnt)
        rows = f"{max(used - sum(kept.values()), 0):,}"
        raise fault("ROLLBACK_NOT_AGREED", model=name, version=to, rows=rows)
    _record(home, name, f"to {to}{f', {by}' if by else ''}")
    return RollbackView.of(name, ask_for_rollback(home.models / name, to))


def _record(home: Home, model: str, detail: str) -> None:
    writer = HistoryWriter(home.history)
    try:
        writer.write([EventRecord(datetime.now(UTC), ROLLED_BACK, model, detail)])
    finally:
        writer.close()


def _shown(home: Home, graph: Graph | None, name: str) -> ModelView:
    models = graph.models if graph else ()
    declared = next((model for model in models if model.name == name), None)
    key = declared.key if declared else ()
    folder = home.models / name
    return ModelView(
        name,
        versions_of(home.table(name), key, folder),
        key,
        _drifts(home, name, declared),
        tuple(_scorers(home, name)),
        tuple(RollbackView.of(name, one) for one in read_rollbacks(folder)),
    )


def _drifts(home: Home, name: str, declared: Model | None) -> tuple[DriftView, ...]:
    if declared is not None and declared.drift is None:
        return ()
    time, key = (declared.event_time, declared.key) if declared else (None, ())
    return tuple(DriftView(*one) for one in drifts_of(home.table(name), time, key))


def _scorers(home: Home, name: str) -> Iterator[ScorerView]:
    for query in home.readers_of_references:
        _, bound = ReferenceData(home.references(query)).read()
        for reference, one in bound.items():
            found = _BOUND.fullmatch(reference)
            if found is not None and found["model"] == name:
                version = version_read(home.table(name), one.version, home.models / name)
                yield ScorerView(query, version, is_pinned=found["pinned"] is not None)


def _means(
    counted: list[tuple[int, dict[str, float | None]]],
) -> dict[str, float | None]:
    """Return means of metrics, by how many rows were learnt."""
    means: dict[str, float | None] = {}
    for name in dict.fromkeys(name for _, metrics in counted for name in metrics):
        found = [(n, metrics.get(name)) for n, metrics in counted]
        parts = [(n, value) for n, value in found if value is not None]
        rows = sum(n for n, _ in parts)
        means[name] = sum(n * value for n, value in parts) / rows if rows else None
    return means


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
