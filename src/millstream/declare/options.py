"""The options of each kind of dataset, as users give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.dataset import Mode, OnViolation
    from millstream.model.destination import Destination
    from millstream.model.sink import Sink
    from millstream.model.spark_types import StructType


class RunningOptions(TypedDict, total=False):
    """The options of every dataset but views."""

    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str


class SourceOptions(RunningOptions, total=False):
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
    keep: str
    keep_versions: str


class ViewOptions(TypedDict, total=False):
    """The options of a view, besides its query."""

    name: str


class TableOptions(RunningOptions, total=False):
    """The options of a table, besides its query."""

    name: str
    mode: Mode
    key: Sequence[str]
    partition_by: Sequence[str]
    expect: Mapping[str, str]
    on_violation: OnViolation
    evolve: bool
    keep_quarantined: str
    keep_versions: str


class FunctionalOptions(TableOptions, total=False):
    """The options of a functional stream, besides its program."""

    schema: Required[str | StructType]
    interval: str


class ServeOptions(RunningOptions, total=False):
    """The options of a served answer, besides its query."""

    to: Required[Sink | Sequence[Sink]]
    name: str
    mode: Mode


class AlertOptions(RunningOptions, total=False):
    """The options of an alert, besides its query."""

    to: Required[Destination | Sequence[Destination]]
    name: str
    key: Sequence[str]
    cooldown: str
    event_time: str
    retry_for: str
    keep: str
    keep_versions: str


class ModelOptions(RunningOptions, total=False):
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
    keep_quarantined: str
    keep_versions: str
