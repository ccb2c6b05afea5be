"""The kinds of dataset an application is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from millstream.model.query_options import UNDECLARED, QueryOptions
from millstream.model.sink import BatchedSink, Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from millstream.errors import Location
    from millstream.model.connector import Connector
    from millstream.model.destination import Destination
    from millstream.model.trigger import Trigger

Mode = Literal["append", "update", "complete"]
OnViolation = Literal["quarantine", "drop", "fail", "warn"]

MODES: tuple[str, ...] = ("append", "update", "complete")
ON_VIOLATION: tuple[str, ...] = ("quarantine", "drop", "fail", "warn")
LATE_POLICIES: tuple[str, ...] = ("keep", "fail")


@dataclass(frozen=True, slots=True)
class Expectations:
    """Rules that every row must meet, and what happens to a row that does not."""

    rules: Mapping[str, str] = field(default_factory=dict)
    """Name of the rule -> SQL condition; a row meets it only if the condition is true."""
    on_violation: str = "quarantine"


SOURCE_PARTITIONS = ("day",)
VERDICTS = ("ok", "late", "future", "malformed", "rejected")
"""What landing says of a row."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: landed with a verdict each, or read live."""

    kind: ClassVar = "source"
    is_changing: ClassVar = False

    name: str
    connector: Connector
    at: Location
    event_time: str | None = None
    """The column."""
    event_time_from: str | None = None
    """The SQL expression that landing computes it with; None if records have the column."""
    watermark: str | None = None
    future: str = "1 day"
    late: str = "keep"
    idle: str | None = None
    """How long without rows until the clock moves its watermark; None: rows alone do."""
    live: bool = False
    partition_by: str | None = None
    """`day`: the rows of each day of the event time have files of their own."""
    expect: Expectations = Expectations()
    evolve: bool = False
    options: QueryOptions = UNDECLARED
    bound_at: Location | None = None
    """Where a profile says that it comes from elsewhere than in the code."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Nothing: rows enter the application here."""
        return ()

    @property
    def connector_at(self) -> Location:
        """The location of the connector's settings."""
        return self.bound_at or self.at


@dataclass(frozen=True, slots=True)
class View:
    """A named query, inlined into the queries that read it."""

    kind: ClassVar = "view"
    live: ClassVar = False
    options: ClassVar = UNDECLARED
    is_changing: ClassVar = False

    name: str
    reads: tuple[str, ...]
    build: Callable[..., Any] = field(compare=False, repr=False)
    at: Location


@dataclass(frozen=True, slots=True)
class Table:
    """A query whose answer is kept as a Delta table."""

    kind: ClassVar = "table"
    live: ClassVar = False

    name: str
    reads: tuple[str, ...]
    build: Callable[..., Any] = field(compare=False, repr=False)
    at: Location
    mode: str = "append"
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    expect: Expectations = Expectations()
    evolve: bool = False
    options: QueryOptions = UNDECLARED

    @property
    def is_changing(self) -> bool:
        """Whether rows that it has had can change or go, so that its readers are recomputed."""
        return self.mode != "append"


@dataclass(frozen=True, slots=True)
class Alert(Table):
    """A table whose rows are sent to destinations: it is their outbox, and rows are only added."""

    kind: ClassVar = "alert"

    to: tuple[Destination, ...] = ()
    cooldown: str | None = None
    """Of the rows with one key, one is sent in each period of event time of this length."""
    event_time: str | None = None
    """The column that the cooldown is measured by; `window.end` is a field of one."""
    retry_for: str = "1 day"
    """How long a delivery that fails is retried before the notice is dead."""


@dataclass(frozen=True, slots=True)
class Model(Table):
    """A model that learns from the rows of a query.

    It is a table of its versions, and of all rows as they were scored before they were learnt.
    """

    kind: ClassVar = "model"

    learner: Callable[[], Any] = field(kw_only=True, compare=False, repr=False)
    """Makes a learner that has learnt nothing."""
    way: Literal["rows", "sums", "slices"] = "rows"
    """Whether it learns row by row, by sums of slices, or by the rows of slices."""
    label: str | None = None
    """The column that is predicted; None: a learner without labels."""
    features: tuple[str, ...] = ()
    """The columns it is predicted from; if empty, all but the label, the key and the event time."""
    every: str = "1 hour"
    """How far apart in event time versions are kept."""
    metrics: tuple[Any, ...] = field(default=(), compare=False)
    """What is measured; if empty, what is usual for what it predicts."""
    drift: Any = field(default=None, compare=False)
    """A detector that is told how wrong each prediction was; None: nothing looks for drift."""
    window: int = 1000
    """Over how many of the last rows metrics are measured, beside all rows."""
    classes: tuple[Any, ...] = ()
    """The labels there are; a row with another is quarantined."""
    event_time: str | None = None
    """The column that orders rows, if there are several of type TIMESTAMP."""

    @property
    def not_features(self) -> tuple[str, ...]:
        """The columns that are never features by default, besides the event time."""
        return (*self.key, *((self.label,) if self.label else ()))


@dataclass(frozen=True, slots=True)
class FunctionalStream(Table):
    """A functional program over other datasets: what it makes of each interval is kept."""

    kind: ClassVar = "stream"

    schema: Any = field(kw_only=True)
    """The columns of what it makes."""
    interval: str = "1 second"
    """How long a batch of the program is, in event time."""


@dataclass(frozen=True, slots=True)
class Serve:
    """A query whose answer goes to sinks outside the home."""

    kind: ClassVar = "serve"
    live: ClassVar = False
    is_changing: ClassVar = False

    name: str
    reads: tuple[str, ...]
    build: Callable[..., Any] = field(compare=False, repr=False)
    at: Location
    to: tuple[Sink, ...]
    mode: str | None = None
    options: QueryOptions = UNDECLARED

    def sinks_in(self, trigger: Trigger) -> tuple[Sink, ...]:
        """The sinks as they are written to: Spark itself writes only where nothing else can."""
        if trigger.is_row_wise:
            return self.to
        return tuple(s.in_batches() if isinstance(s, BatchedSink) else s for s in self.to)

    def mode_in(self, trigger: Trigger) -> str:
        """The declared mode; else append, or update in real time, which has no other."""
        return self.mode or ("update" if trigger.kind == "realtime" else "append")


Dataset = Source | View | Table | Alert | Model | FunctionalStream | Serve


@dataclass(frozen=True, slots=True)
class EventTime:
    """The column that says when a row happened, and how long late rows are accepted for."""

    column: str
    delay: timedelta
