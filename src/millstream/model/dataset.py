"""The kinds of dataset an application is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from millstream.model.record import PLAIN, RecordOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from millstream.errors import Location, MillstreamError
    from millstream.model.avro import AvroSchemas
    from millstream.model.destination import Destination
    from millstream.model.schema import Schema
    from millstream.model.spark_types import DataFrame, DataStreamWriter, SparkSession
    from millstream.model.trigger import Trigger

Mode = Literal["append", "update", "complete"]
OnViolation = Literal["quarantine", "drop", "fail", "warn"]

MODES: tuple[str, ...] = ("append", "update", "complete")
ON_VIOLATION: tuple[str, ...] = ("quarantine", "drop", "fail", "warn")
LATE_POLICIES: tuple[str, ...] = ("keep", "fail")


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How CSV is cut into records and cells, by RFC 4180."""

    sep: str = ","
    quote: str = '"'
    """Around a field that contains a separator, quote or newline; if empty, nothing is quoted."""
    escape: str | None = None
    header: bool = False
    null_value: str | Sequence[str] = ""
    """What stands for null, beside an empty field: one text, or several."""
    decimal: str = "."
    """What is before the decimals of a number."""
    thousands: str = ""
    """What may be between groups of three digits of a number."""
    multiline: bool = False
    """Whether a quoted field may contain newlines. Each file is then read by one task."""

    @property
    def null_values(self) -> tuple[str, ...]:
        """What stands for null."""
        one = isinstance(self.null_value, str)
        return (str(self.null_value),) if one else tuple(self.null_value)

    @property
    def reads_whole_files(self) -> bool:
        """Whether a line is understood only with those before it in its file."""
        return self.header or self.multiline


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """The Avro schemas of records; each is the path of a file, or the text of one.

    Give `writer` if all records are written by one schema and have no header. Give `writers` if
    they begin with a byte 0 and the id of their schema in four bytes, as Confluent's clients do.
    """

    writer: str = ""
    writers: Mapping[str, str] = field(default_factory=dict)
    """By id."""
    reader: str = ""
    """What records are read as, by Avro's rules: it has the defaults of what they lack."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How a connector's records become typed rows."""

    format: Literal["json", "csv", "text", "logfmt", "avro", "rows"]
    """`rows` are typed already; the others arrive as one `value` to decode."""
    csv: CsvOptions | None = None
    avro: AvroSchemas | None = None
    number_lines: bool = False
    """Whether the position of a record is its line, to be counted while decoding."""
    record: RecordOptions = PLAIN


@runtime_checkable
class Connector(Protocol):
    """A place rows come from.

    `read` gives a stream with the columns `_origin` (file, or topic/partition) and `_position`
    (line or offset; null where lines are counted later), and either `value` or the columns of the
    schema, as the codec says. Reading the same offsets again must give the same rows.
    """

    @property
    def schema(self) -> Schema | str | object:
        """The columns of a record, as the user gave them."""
        ...

    @property
    def codec(self) -> Codec:
        """How records become rows."""
        ...

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """Find what is wrong with the settings, without Spark and without the network."""
        ...

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Raise if the outside system cannot be read right now."""
        ...

    def read(self, spark: SparkSession, place: Path) -> DataFrame:
        """Open the stream; `place` is a folder of the home for whatever the connector keeps."""
        ...


@runtime_checkable
class Placed(Protocol):
    """A connector that reads a place of this machine, which must exist before a run."""

    def missing(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """Find what does not exist."""
        ...


@runtime_checkable
class FileReading(Protocol):
    """A connector that reads files: one that cannot be read is set aside, and the others land."""

    def read_files(self, spark: SparkSession, paths: Sequence[str]) -> DataFrame:
        """Read some files of the stream, with the columns of `read`."""
        ...

    def refusal(self, path: str) -> str | None:
        """Return why a file is not read, if its name shows it or its first bytes do."""
        ...

    def unreadable(self, error: BaseException) -> tuple[str, str] | None:
        """Return the file at which reading failed, and why; None if it failed otherwise."""
        ...


@runtime_checkable
class Receiving(Protocol):
    """A connector whose records cannot be read again: it passes them on as they arrive."""

    def receive(self, inbox: Any) -> None:
        """Hand records over to an inbox until that is closed."""
        ...


@runtime_checkable
class RowWise(Protocol):
    """A connector or sink whose rows can be taken one by one, without batches."""

    row_wise: ClassVar[tuple[str, ...]]
    """The triggers without batches that it can be read or written in."""


@runtime_checkable
class BoundedReading(Protocol):
    """A connector that can bound how much a batch reads."""

    bounded_in: ClassVar[Literal["rows", "bytes"]]
    """What the bound counts."""

    def bounded(self, most: int) -> Connector:
        """Return it with a bound; as it is if its own options have one."""
        ...


@runtime_checkable
class TableReading(Protocol):
    """A connector that reads a table of another app, which can be bounded in whole versions."""

    @property
    def folder(self) -> Path:
        """Where the table is."""
        ...

    def read_bounded(self, spark: SparkSession, files: int) -> DataFrame:
        """Open the stream with so many files in its first batch."""
        ...


@runtime_checkable
class Tasks(Protocol):
    """A connector that, without batches, keeps tasks of the cluster busy all the time."""

    def tasks(self, spark: SparkSession) -> int:
        """Return how many."""
        ...


@runtime_checkable
class Beginning(Protocol):
    """A connector that records in a new checkpoint where it begins."""

    def begin(self, checkpoint: Path) -> None:
        """Write it, before the query that lands the source first starts."""
        ...


@runtime_checkable
class Sampled(Protocol):
    """A connector that can show a few records without being opened as a stream."""

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:
        """Return records that are there, with the columns of `read`; at most `rows` are used."""
        ...


@runtime_checkable
class Sink(Protocol):
    """A place an answer goes to."""

    def guarantee(self, trigger: Trigger) -> str:
        """Return how often a row arrives, as `check` and `graph` show it."""
        ...

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Raise if the outside system cannot be written to right now."""
        ...


@runtime_checkable
class DemandingSink(Protocol):
    """A sink that needs certain columns."""

    def columns(self) -> tuple[str, ...]:
        """List the columns that an answer must have."""
        ...


@runtime_checkable
class TypedSink(Protocol):
    """A sink that can take some columns only as certain types."""

    def types(self) -> Mapping[str, tuple[str, ...]]:
        """List the types that a column may have, in Spark's words, if the answer has it."""
        ...


@runtime_checkable
class NamingSink(Protocol):
    """A sink that cannot hold columns of every name."""

    def name_fault(self, column: str) -> str | None:
        """Return why it cannot hold a column of this name; None if it can."""
        ...


@runtime_checkable
class SparkSink(Sink, Protocol):
    """A sink that Spark itself writes to, without a fence: what is retried arrives again."""

    def sink_faults(self, serve: str, at: Location) -> Iterator[MillstreamError]:
        """Find what is wrong with the settings, without Spark and without the network."""
        ...

    def columns(self) -> tuple[str, ...]:
        """List the columns that an answer must have."""
        ...

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """Return Spark's writer for a stream."""
        ...


@runtime_checkable
class ShownSink(Sink, Protocol):
    """A sink that can show the rows of a batch beside the stores that have it."""

    def show(self, batch: int, parts: Iterable[Any]) -> None:
        """Show some rows of Arrow tables."""
        ...


@runtime_checkable
class StoreSink(Sink, Protocol):
    """A sink that keeps a fence beside its rows, so that each batch is written once."""

    @property
    def key(self) -> Sequence[str]:
        """The columns that identify a row."""
        ...

    @property
    def newest_by(self) -> str | None:
        """The column that says which of two rows with one key is kept."""
        ...

    @property
    def delete_when(self) -> str | None:
        """The condition on rows that delete the one with their key."""
        ...

    @property
    def evolve(self) -> bool:
        """Whether columns may be added to what is there."""
        ...

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:
        """Find what the store cannot do, without asking it."""
        ...


@runtime_checkable
class LogSink(Protocol):
    """A store that keeps whatever is added: two rows with one key are no contradiction."""

    @property
    def keeps_every_row(self) -> bool:
        """Whether it does."""
        ...


@runtime_checkable
class BatchedSink(Sink, Protocol):
    """A sink that is a store where there are batches, and written by Spark itself where not."""

    def in_batches(self) -> StoreSink:
        """Return the store."""
        ...


@runtime_checkable
class NamedSink(Protocol):
    """A sink whose fence is kept in the home, under its name."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


@dataclass(frozen=True, slots=True)
class Followed:
    """What is known of a table of another app, at the version a batch has read it to."""

    position: Mapping[str, int]
    """Which version it was, to know it again."""
    frontier: int | None
    """No row to come stems from an event before it, in microseconds since 1970; None if unknown."""
    event_time: str | None
    """The column of the event time."""
    delay: timedelta | None
    """How late a row may be behind the greatest event time, if that is bounded."""


@runtime_checkable
class Registering(Protocol):
    """A connector to a table that is kept for those who have registered as its readers."""

    def register(self, source: str, home: Path, at: Location) -> None:
        """Register a source of the app that is deployed in a home."""
        ...


@runtime_checkable
class Following(Protocol):
    """A connector to a table whose rows come with a frontier."""

    def followed(self) -> Followed | None:
        """Return what is known of the table now; None if it cannot be read."""
        ...

    def followed_to(self, version: int) -> Followed:
        """Return what was known of the table at a version."""
        ...

    def check_position(self, position: Mapping[str, int], source: str, at: Location) -> None:
        """Raise unless the table is still the one that was read to a position."""
        ...


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
    trigger: str | None = None
    batch: str | None = None
    """How much a batch reads: what takes so long, or so many rows."""
    freshness: str | None = None
    """How long ago its last batch may be."""
    behind: str | None = None
    """How many rows it may have left to read."""
    failed_rows: str | None = None
    """Which share of its rows may break a rule or be malformed."""
    keep: str | None = None
    """How long landed rows are kept after they arrived; None: for ever."""
    keep_versions: str | None = None
    """How long earlier versions of the table can be read; None: as the app says."""
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
    trigger: str | None = None
    batch: str | None = None
    """How much a batch reads: what takes so long, or so many rows."""
    freshness: str | None = None
    """How long ago its last batch may be."""
    behind: str | None = None
    """How many rows it may have left to read."""
    failed_rows: str | None = None
    """Which share of its rows may break a rule or be malformed."""
    keep_quarantined: str | None = None
    """How long the rows of its quarantine are kept; None: for ever."""
    keep_versions: str | None = None
    """How long earlier versions of the table can be read; None: as the app says."""

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
    keep: str | None = None
    """How long the rows of its outbox are kept; None: for ever."""


@dataclass(frozen=True, slots=True)
class Model(Table):
    """A model that learns from the rows of a query.

    It is a table of its versions, and of all rows as they were scored before they were learnt.
    """

    kind: ClassVar = "model"

    learner: Callable[[], Any] = field(kw_only=True, compare=False, repr=False)
    """Makes a learner that has learnt nothing."""
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
    trigger: str | None = None
    batch: str | None = None
    """How much a batch reads: what takes so long, or so many rows."""
    freshness: str | None = None
    """How long ago its last batch may be."""
    behind: str | None = None
    """How many rows it may have left to read."""
    failed_rows: str | None = None
    """Which share of its rows may break a rule or be malformed."""

    def sinks_in(self, trigger: Trigger) -> tuple[Sink, ...]:
        """The sinks as they are written to: Spark itself writes only where nothing else can."""
        if trigger.is_row_wise:
            return self.to
        return tuple(s.in_batches() if isinstance(s, BatchedSink) else s for s in self.to)

    def mode_in(self, trigger: Trigger) -> str:
        """The declared mode; else append, or update in real time, which has no other."""
        return self.mode or ("update" if trigger.kind == "realtime" else "append")


Dataset = Source | View | Table | Alert | Model | Serve


@dataclass(frozen=True, slots=True)
class EventTime:
    """The column that says when a row happened, and how long late rows are accepted for."""

    column: str
    delay: timedelta
