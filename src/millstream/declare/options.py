"""The options of each kind of dataset, as users give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.dataset import (
        Mode,
        OnViolation,
    )
    from millstream.model.destination import Destination
    from millstream.model.sink import Sink


class SourceOptions(TypedDict, total=False):
    """The options of a source, besides its connector."""

    name: str
    event_time: str | Mapping[str, str]
    watermark: str
    future: str
    late: Literal["keep", "fail"]
    idle: str
    live: bool
    partition_by: Literal["day"]
    expect: Mapping[str, str]
    evolve: bool
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str
    keep: str
    keep_versions: str


class ViewOptions(TypedDict, total=False):
    """The options of a view, besides its query."""

    name: str


class TableOptions(TypedDict, total=False):
    """The options of a table, besides its query."""

    name: str
    mode: Mode
    key: Sequence[str]
    partition_by: Sequence[str]
    expect: Mapping[str, str]
    on_violation: OnViolation
    evolve: bool
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str
    keep_quarantined: str
    keep_versions: str


class ServeOptions(TypedDict, total=False):
    """The options of a served answer, besides its query."""

    to: Required[Sink | Sequence[Sink]]
    name: str
    mode: Mode
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str


class AlertOptions(TypedDict, total=False):
    """The options of an alert, besides its query."""

    to: Required[Destination | Sequence[Destination]]
    name: str
    key: Sequence[str]
    cooldown: str
    event_time: str
    retry_for: str
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str
    keep: str
    keep_versions: str


class ModelOptions(TypedDict, total=False):
    """The options of a model, besides the rows that it learns from."""

    learner: Required[Any]
    label: str
    features: Sequence[str]
    key: Sequence[str]
    every: str
    metrics: Sequence[Any]
    drift: Any
    window: int
    classes: Sequence[Any]
    event_time: str
    name: str
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str
    keep_quarantined: str
    keep_versions: str
