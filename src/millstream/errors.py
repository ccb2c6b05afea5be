"""Every error a user can meet: what is wrong, where, and how to fix it.

    MillstreamError
    ├── DeclarationError    the app is wrong             exit 1
    │   └── UserCodeError   a function of the app raised exit 1
    ├── CommandError        the command is wrong         exit 2
    └── ClusterError        Spark, a broker or storage   exit 3

The wording lives here and nowhere else; the code of each class is stable, its wording is not.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A line of the user's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def closest(name: str, known: Iterable[str]) -> str:
    """Offer the nearest known name.

    >>> closest("ordrs", ["orders", "clicks"])
    "did you mean 'orders'? "
    >>> closest("x", ["orders"])
    ''
    """
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {nearest[0]!r}? " if nearest else ""


def listed(names: Iterable[str]) -> str:
    """Name things in a sentence.

    >>> listed(["b", "a"])
    'a, b'
    >>> listed([])
    'none'
    """
    return ", ".join(sorted(names)) or "none"


def _rebuild(
    kind: Callable[..., MillstreamError],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    at: Location | None,
) -> MillstreamError:
    error = kind(*args, **kwargs)
    error.at = at
    return error


class MillstreamError(Exception):
    """Anything Millstream refuses or reports: what, where and how to fix it."""

    code: ClassVar[str] = "MILLSTREAM"
    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False
    """Whether trying again, with nothing changed by the user, may succeed."""

    _call: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> MillstreamError:  # noqa: D102
        error = super().__new__(cls, *args)
        error._call = (args, kwargs)
        return error

    def __init__(self, what: str, *, fix: str, at: Location | None = None) -> None:
        self.what, self.fix, self.at = what, fix, at
        super().__init__(what)

    def located(self, at: Location) -> MillstreamError:
        """Say where, for an error raised by code that cannot know."""
        self.at = self.at or at
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only arguments are lost by Exception's own pickling, and errors cross workers.
        return (_rebuild, (type(self), *self._call, self.at))

    def __str__(self) -> str:
        place = f"\n  at:  {self.at}" if self.at else ""
        return f"[{self.code}] {self.what}{place}\n  fix: {self.fix}"


class DeclarationError(MillstreamError):
    """The application is wrong; its author must act."""

    code = "DECLARATION"


class UserCodeError(DeclarationError):
    """A function of the application raised or returned the wrong thing."""

    code = "USER_CODE"


class CommandError(MillstreamError):
    """The command is wrong; whoever typed it must act."""

    code = "COMMAND"
    exit_code = 2


class ClusterError(MillstreamError):
    """Spark, a broker, storage or the machine is wrong; whoever operates it must act."""

    code = "CLUSTER"
    exit_code = 3


_INSTALL_JAVA = (
    "`apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), `brew install openjdk@17` (macOS)"
)


class JavaMissingError(ClusterError):
    """There is no Java on this machine, or not where `JAVA_HOME` says."""

    code = "JAVA_MISSING"

    def __init__(self, *, supported: Sequence[int], java_home: str | None = None) -> None:
        self.java_home = java_home
        versions = " or ".join(str(version) for version in supported)
        where = f"at JAVA_HOME={java_home!r}" if java_home else "on this machine"
        super().__init__(
            f"Spark needs Java {versions}, and there is no Java {where}",
            fix=f"{_INSTALL_JAVA}, or set JAVA_HOME to a Java {versions}",
        )


class JavaVersionError(ClusterError):
    """The Java of this machine is one that Spark does not run on."""

    code = "JAVA_VERSION"

    def __init__(self, version: str, *, home: str, supported: Sequence[int]) -> None:
        self.version, self.home = version, home
        versions = " or ".join(str(version) for version in supported)
        super().__init__(
            f"Spark needs Java {versions}, got Java {version} at {home!r}",
            fix=f"{_INSTALL_JAVA}, or set JAVA_HOME to a Java {versions}",
        )


class JarChecksumError(ClusterError):
    """A jar is not the one that was locked."""

    code = "JAR_CHECKSUM"
    transient = True

    def __init__(self, coordinate: str, *, path: str, expected: str, actual: str) -> None:
        self.coordinate, self.path = coordinate, path
        super().__init__(
            f"jar {coordinate!r} has SHA-256 {actual}, the lock says {expected}",
            fix=f"{path!r} is deleted; start again to fetch it anew, and if it is wrong "
            "again, find out who changes it on the way",
        )


class JarUnavailableError(ClusterError):
    """A locked jar is neither in the cache nor to be had."""

    code = "JAR_UNAVAILABLE"
    transient = True

    def __init__(self, coordinates: Sequence[str], *, folder: str, log: str) -> None:
        self.coordinates = tuple(coordinates)
        super().__init__(
            f"not in the cache and not to be fetched: {', '.join(coordinates)}",
            fix="check the network; behind a proxy, set JAVA_TOOL_OPTIONS="
            "'-Dhttps.proxyHost=… -Dhttps.proxyPort=…'; without a network, copy the jars into "
            f"{folder!r} from the cache of another machine; what was tried is in {log!r}",
        )


class SparkStartError(ClusterError):
    """Spark does not start."""

    code = "SPARK_START"

    def __init__(self, reason: str, *, log: str) -> None:
        self.log = log
        super().__init__(
            f"Spark does not start: {reason}",
            fix=f"the last lines of {log!r} say why; `millstream doctor` looks for usual causes",
        )


class ForeignSessionError(ClusterError):
    """A Spark session that Millstream did not open is in the way."""

    code = "FOREIGN_SESSION"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"this process already runs Spark session {name!r}, which Millstream did not open "
            "and which may lack its jars and settings",
            fix="call `.stop()` on that session first",
        )


class AppFileError(UserCodeError):
    """The app file raised while it was read."""

    code = "APP_FILE"

    def __init__(self, file: str, *, cause: str, at: Location | None) -> None:
        fix = "mend the line above; `python FILE` shows the whole trace"
        if "SESSION_OR_CONTEXT_NOT_EXISTS" in cause:
            fix = (
                "Spark starts after the file is read: move the line into the function of a "
                "dataset; a UDF may stay if its type is an object such as StringType()"
            )
        super().__init__(f"app file {file!r} raises {cause}", fix=fix, at=at)


class AppFileMissingError(CommandError):
    """The app file does not exist."""

    code = "APP_FILE_MISSING"

    def __init__(self, file: str, *, nearby: Sequence[str]) -> None:
        super().__init__(
            f"app file {file!r} does not exist",
            fix=f"{closest(file, nearby)}Python files here: {listed(nearby)}",
        )


class NoAppError(DeclarationError):
    """The app file declares no App."""

    code = "NO_APP"

    def __init__(self, file: str, *, name: str | None = None, names: Sequence[str] = ()) -> None:
        declare = 'declare one at the top level: app = ms.App("name")'
        offer = f"{closest(name or '', names)}Apps are {listed(names)}" if names else declare
        super().__init__(
            f"app file {file!r} holds no App" + (f" {name!r}" if name else ""),
            fix=offer,
            at=Location(file, 1),
        )


class TwoAppsError(DeclarationError):
    """The app file declares more than one App."""

    code = "TWO_APPS"

    def __init__(self, file: str, *, names: Sequence[str]) -> None:
        super().__init__(
            f"app file {file!r} holds {len(names)} Apps: {', '.join(names)}",
            fix=f"keep one App per file, or name the one to use: {file}:{names[0]}",
            at=Location(file, 1),
        )


class EmptyAppError(DeclarationError):
    """The app declares nothing that would run."""

    code = "EMPTY_APP"

    def __init__(self, app: str, *, at: Location | None = None) -> None:
        super().__init__(
            f"app {app!r} declares no source",
            fix="declare where rows come from with @app.source, and what to keep with @app.table",
            at=at,
        )


class NameRefusedError(DeclarationError):
    """A dataset or app has a name that cannot be a table, a folder and a SQL name."""

    code = "NAME_REFUSED"

    def __init__(self, name: str, *, at: Location | None = None) -> None:
        super().__init__(
            f"{name!r} cannot name an app or a dataset",
            fix="use a lower-case letter, then letters, digits and single underscores, "
            "at most 63 characters",
            at=at,
        )


class DuplicateNameError(DeclarationError):
    """Two datasets have one name."""

    code = "DUPLICATE_NAME"

    def __init__(self, name: str, *, first: Location, at: Location) -> None:
        super().__init__(
            f"dataset {name!r} is declared twice, first at {first}",
            fix="rename one of the two",
            at=at,
        )


class UnknownInputError(DeclarationError):
    """A dataset reads a name that nothing declares."""

    code = "UNKNOWN_INPUT"

    def __init__(self, name: str, *, dataset: str, declared: Sequence[str], at: Location) -> None:
        super().__init__(
            f"{dataset!r} reads {name!r}, which is not declared",
            fix=f"{closest(name, declared)}declared names are {listed(declared)}",
            at=at,
        )


class CycleError(DeclarationError):
    """Datasets read each other in a circle."""

    code = "CYCLE"

    def __init__(self, names: Sequence[str], *, at: Location) -> None:
        super().__init__(
            f"datasets read each other in a circle: {' reads '.join(repr(n) for n in names)}",
            fix="break the circle: one of them must not read the next",
            at=at,
        )


class NoInputError(DeclarationError):
    """A table or view reads nothing."""

    code = "NO_INPUT"

    def __init__(self, dataset: str, *, at: Location) -> None:
        super().__init__(
            f"{dataset!r} reads nothing",
            fix="give the function a parameter named after each dataset it reads",
            at=at,
        )


class OptionRefusedError(DeclarationError):
    """An option has a value that does not exist."""

    code = "OPTION_REFUSED"

    def __init__(
        self, option: str, value: object, *, dataset: str, allowed: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"{dataset!r} has {option}={value!r}",
            fix=f"{closest(str(value), allowed)}{option} is one of {', '.join(allowed)}",
            at=at,
        )


class UnknownOptionError(DeclarationError):
    """An option does not exist."""

    code = "UNKNOWN_OPTION"

    def __init__(self, option: str, *, dataset: str, known: Sequence[str], at: Location) -> None:
        super().__init__(
            f"{dataset!r} has the option {option!r}, which does not exist",
            fix=f"{closest(option, known)}options are {listed(known)}",
            at=at,
        )


class DurationRefusedError(DeclarationError):
    """A length of time cannot be read."""

    code = "DURATION_REFUSED"

    def __init__(self, option: str, value: str, *, dataset: str, at: Location | None) -> None:
        super().__init__(
            f"{dataset!r} has {option}={value!r}, which is not a length of time",
            fix='write a number and a unit, such as "10 minutes", "1 day" or "500 ms"',
            at=at,
        )


class KeyMissingError(DeclarationError):
    """A table in update mode has no key."""

    code = "KEY_MISSING"

    def __init__(self, table: str, *, at: Location) -> None:
        super().__init__(
            f"table {table!r} has mode='update' and no key",
            fix='say which columns identify a row: key=["…"]',
            at=at,
        )


class KeyUnusedError(DeclarationError):
    """A table has a key that its mode does not use."""

    code = "KEY_UNUSED"

    def __init__(self, table: str, *, mode: str, at: Location) -> None:
        super().__init__(
            f"table {table!r} has a key, which mode={mode!r} does not use",
            fix="use mode='update' to keep one row per key, or leave the key out",
            at=at,
        )


class WatermarkMissingError(DeclarationError):
    """A source has an event time without a watermark, or the other way round."""

    code = "WATERMARK_MISSING"

    def __init__(self, source: str, *, has: str, lacks: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} has {has} and no {lacks}",
            fix='give both, such as event_time="at", watermark="10 minutes"',
            at=at,
        )


class EventTimeColumnError(DeclarationError):
    """The event time is not a timestamp column of the schema."""

    code = "EVENT_TIME_COLUMN"

    def __init__(
        self, column: str, *, source: str, got: str | None, columns: Sequence[str], at: Location
    ) -> None:
        fact = "is not in its schema" if got is None else f"is {got}, not TIMESTAMP"
        super().__init__(
            f"source {source!r} has event_time={column!r}, which {fact}",
            fix=f"{closest(column, columns) if got is None else ''}name a TIMESTAMP column; "
            f"the schema has {listed(columns)}",
            at=at,
        )


class NotAConnectorError(UserCodeError):
    """A source function returned something rows cannot be read from."""

    code = "NOT_A_CONNECTOR"

    def __init__(self, source: str, *, got: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} returns {got}",
            fix="return ms.Files(…), ms.Kafka(…), ms.Generator(…), ms.Rate(…) or ms.Memory(…)",
            at=at,
        )


class SourceParametersError(DeclarationError):
    """A source function has parameters."""

    code = "SOURCE_PARAMETERS"

    def __init__(self, source: str, *, parameters: Sequence[str], at: Location) -> None:
        super().__init__(
            f"source {source!r} has parameters: {', '.join(parameters)}",
            fix="a source reads no dataset: leave the parameters out, or use @app.table",
            at=at,
        )


class SqlRefusedError(DeclarationError):
    """A SQL dataset is not one readable query."""

    code = "SQL_REFUSED"

    def __init__(self, dataset: str, *, why: str, at: Location) -> None:
        super().__init__(
            f"the SQL of {dataset!r} is not one query: {why}",
            fix="write one SELECT whose FROM names are datasets",
            at=at,
        )


class ChangingInputError(DeclarationError):
    """A table that only adds or upserts reads one whose rows change."""

    code = "CHANGING_INPUT"

    def __init__(self, table: str, *, mode: str, reads: str, reads_mode: str, at: Location) -> None:
        super().__init__(
            f"table {table!r} has mode={mode!r} and reads {reads!r}, "
            f"whose rows change (mode={reads_mode!r})",
            fix="use mode='complete': the answer is then recomputed whenever its input changes",
            at=at,
        )


class NotADataFrameError(UserCodeError):
    """A function returned something else than a DataFrame."""

    code = "NOT_A_DATAFRAME"

    def __init__(self, dataset: str, *, got: str, at: Location) -> None:
        super().__init__(
            f"{dataset!r} returns {got}",
            fix="return a pyspark DataFrame; a missing `return` gives None",
            at=at,
        )


class FunctionRaisedError(UserCodeError):
    """A function of the app raised while its query was built."""

    code = "FUNCTION_RAISED"

    def __init__(self, dataset: str, *, cause: str, at: Location) -> None:
        super().__init__(f"{dataset!r} raises {cause}", fix="mend the function", at=at)


class QueryRefusedError(UserCodeError):
    """Spark refuses a query: an unknown column, or an operation a stream cannot do."""

    code = "QUERY_REFUSED"

    def __init__(self, dataset: str, *, condition: str, cause: str, at: Location) -> None:
        super().__init__(
            f"Spark refuses {dataset!r} ({condition}): {cause}",
            fix="mend the query; `millstream check` tries it without data",
            at=at,
        )


class RuleRefusedError(UserCodeError):
    """An expectation is not a condition on the columns."""

    code = "RULE_REFUSED"

    def __init__(self, rule: str, *, dataset: str, cause: str, at: Location) -> None:
        super().__init__(
            f"rule {rule!r} of {dataset!r} is not a condition on its columns: {cause}",
            fix='write a SQL condition such as "speed BETWEEN 0 AND 250"',
            at=at,
        )


class ColumnMissingError(DeclarationError):
    """A key or partition column is not in the answer."""

    code = "COLUMN_MISSING"

    def __init__(
        self, option: str, column: str, *, table: str, columns: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"table {table!r} has {option}={column!r}, which is not in its answer",
            fix=f"{closest(column, columns)}the answer has {listed(columns)}",
            at=at,
        )


class ColumnReservedError(DeclarationError):
    """A table's answer has a column name Millstream keeps for itself."""

    code = "COLUMN_RESERVED"

    def __init__(self, column: str, *, table: str, at: Location) -> None:
        super().__init__(
            f"the answer of {table!r} has the column {column!r}, which Millstream keeps for itself",
            fix="rename the column",
            at=at,
        )


class SchemaChangedError(DeclarationError):
    """The answer no longer fits the table that holds the earlier answers."""

    code = "SCHEMA_CHANGED"

    def __init__(self, table: str, *, column: str, was: str, now: str, at: Location) -> None:
        super().__init__(
            f"column {column!r} of {table!r} is {was} in the table and {now} in the answer",
            fix="cast it back, or give the new column another name (and evolve=True)",
            at=at,
        )


class ColumnAddedError(DeclarationError):
    """The answer has a column that the table lacks."""

    code = "COLUMN_ADDED"

    def __init__(self, table: str, *, column: str, at: Location) -> None:
        super().__init__(
            f"the answer of {table!r} has the column {column!r}, which the table lacks",
            fix="declare it with evolve=True to add the column; earlier rows have null there",
            at=at,
        )


class ColumnDroppedError(DeclarationError):
    """The answer lacks a column that the table has."""

    code = "COLUMN_DROPPED"

    def __init__(self, table: str, *, column: str, at: Location) -> None:
        super().__init__(
            f"the answer of {table!r} lacks the column {column!r} of the table",
            fix="declare it with evolve=True to keep the column, null in new rows",
            at=at,
        )


class LayoutChangedError(DeclarationError):
    """A table that exists was declared with another mode or partitioning."""

    code = "LAYOUT_CHANGED"

    def __init__(self, table: str, *, option: str, was: str, now: str, at: Location) -> None:
        super().__init__(
            f"table {table!r} was made with {option}={was} and is declared with {option}={now}",
            fix="declare it as it was, or give the table another name",
            at=at,
        )


class ExpectationFailedError(UserCodeError):
    """Rows violate a rule whose violation stops the table."""

    code = "EXPECTATION_FAILED"

    def __init__(self, table: str, *, violated: str, batch: int, at: Location) -> None:
        super().__init__(
            f"batch {batch} of {table!r} violates {violated}; nothing of it was written",
            fix="mend the data or the rule, or keep such rows aside: on_violation='quarantine'",
            at=at,
        )


class LateRowsError(UserCodeError):
    """Late rows arrived at a source that allows none."""

    code = "LATE_ROWS"

    def __init__(self, source: str, *, rows: int, batch: int, at: Location) -> None:
        super().__init__(
            f"batch {batch} of source {source!r} has {rows} late rows, and late='fail'; "
            "nothing of it was landed",
            fix="use a longer watermark, or late='keep' to land late rows aside",
            at=at,
        )


class KeyNotUniqueError(UserCodeError):
    """A batch has two rows for one key."""

    code = "KEY_NOT_UNIQUE"

    def __init__(self, table: str, *, key: Sequence[str], batch: int, at: Location) -> None:
        super().__init__(
            f"batch {batch} of {table!r} has several rows for one key ({', '.join(key)}); "
            "nothing of it was written",
            fix="aggregate or deduplicate by the key, or add columns to it",
            at=at,
        )


class HomeLockedError(CommandError):
    """Another driver holds the home."""

    code = "HOME_LOCKED"

    def __init__(self, home: str, *, pid: int, host: str, since: str) -> None:
        self.pid, self.host = pid, host
        super().__init__(
            f"home {home!r} is held by pid {pid} on {host} since {since}",
            fix=f"stop that driver (kill {pid}), or use another --home; "
            "if it hangs, --takeover shuts it out",
        )


class HomeNewerError(CommandError):
    """The home was written by a newer Millstream."""

    code = "HOME_NEWER"

    def __init__(self, home: str, *, layout: int, known: int, written_by: str) -> None:
        super().__init__(
            f"home {home!r} has format {layout}, written by millstream {written_by}; "
            f"this one knows formats up to {known}",
            fix=f"use millstream {written_by} or later, or another --home",
        )


class HomeOtherAppError(CommandError):
    """The home belongs to another app."""

    code = "HOME_OTHER_APP"

    def __init__(self, home: str, *, owner: str, app: str) -> None:
        super().__init__(
            f"home {home!r} belongs to app {owner!r}, not to {app!r}",
            fix="use another --home for each app",
        )


class HomeUnusableError(ClusterError):
    """The home is not a folder that can be written."""

    code = "HOME_UNUSABLE"

    def __init__(self, home: str, *, why: str) -> None:
        super().__init__(f"home {home!r} cannot be used: {why}", fix="choose another --home")


class HomeEmptyError(CommandError):
    """Nothing has run in the home yet."""

    code = "HOME_EMPTY"

    def __init__(self, home: str) -> None:
        super().__init__(
            f"nothing has run in home {home!r} yet",
            fix="`millstream run APP` first, or name another --home",
        )


class HomeDamagedError(ClusterError):
    """A file of the home cannot be read."""

    code = "HOME_DAMAGED"

    def __init__(self, file: str, *, why: str) -> None:
        super().__init__(
            f"{file!r} is damaged: {why}",
            fix="restore it from a backup; the tables beside it are not affected",
        )


class OvertakenError(ClusterError):
    """Another driver took the home over; this one may write nothing more."""

    code = "OVERTAKEN"

    def __init__(self, table: str, *, mine: int, theirs: int) -> None:
        super().__init__(
            f"another driver took over (epoch {theirs}; this one has {mine}): "
            f"{table!r} was not written",
            fix="none needed: the other driver carries on; this one stops",
        )


class CheckpointResetError(ClusterError):
    """The table holds batches that its query's checkpoint knows nothing of."""

    code = "CHECKPOINT_RESET"

    def __init__(self, table: str, *, batch: int, checkpoint: str, knows: int) -> None:
        known = "none" if knows < 0 else f"batches up to {knows}"
        super().__init__(
            f"{table!r} holds batch {batch}, but its checkpoint knows {known}: "
            "running on would skip or repeat rows",
            fix=f"restore {checkpoint!r}; or, to rebuild the table from what it reads, "
            "move both the table and the checkpoint away",
        )


class TableRestoredError(ClusterError):
    """The table lacks batches that its query's checkpoint has committed."""

    code = "TABLE_RESTORED"

    def __init__(self, table: str, *, batch: int, checkpoint: str, knows: int) -> None:
        held = "none" if batch < 0 else f"batches up to {batch}"
        super().__init__(
            f"{table!r} holds {held}, but its checkpoint has committed batch {knows}: "
            "the batches between are lost from the table",
            fix=f"restore the table as it was with {checkpoint!r}; or, to rebuild it from what it "
            "reads, move both the table and the checkpoint away",
        )


class LandingUnbalancedError(ClusterError):
    """A batch would land another number of rows than it read."""

    code = "LANDING_UNBALANCED"
    transient = True

    def __init__(self, source: str, *, batch: int, read: int, landed: int) -> None:
        super().__init__(
            f"batch {batch} of {source!r} read {read} rows and would land {landed}; "
            "nothing of it was landed",
            fix="the input changed while it was read; the batch is tried again",
        )


class NothingLandedError(CommandError):
    """A selected dataset reads something that has never run."""

    code = "NOTHING_LANDED"

    def __init__(self, dataset: str, *, reads: str) -> None:
        super().__init__(
            f"{dataset!r} reads {reads!r}, which has no table yet",
            fix=f"run it with what it reads: --select +{dataset}",
        )


class LiveInBatchError(DeclarationError):
    """A batch run meets a source of which nothing is landed."""

    code = "LIVE_IN_BATCH"

    def __init__(self, source: str, *, at: Location) -> None:
        super().__init__(
            f"source {source!r} is live, so nothing of it is landed to run a batch over",
            fix="leave live=True out to land it",
            at=at,
        )


class UnknownTableError(CommandError):
    """A name that is not a stored dataset was asked for."""

    code = "UNKNOWN_TABLE"

    def __init__(self, name: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"no table {name!r} in this home",
            fix=f"{closest(name, known)}tables are {listed(known)}",
        )


class UnknownVersionError(CommandError):
    """A version of a table was asked for that does not exist."""

    code = "UNKNOWN_VERSION"

    def __init__(self, table: str, *, version: int, latest: int) -> None:
        super().__init__(
            f"table {table!r} has no version {version}",
            fix=f"versions run from 0 to {latest}",
        )


class UnknownSelectionError(CommandError):
    """--select names nothing of the app."""

    code = "UNKNOWN_SELECTION"

    def __init__(self, selector: str, *, declared: Sequence[str]) -> None:
        super().__init__(
            f"--select {selector!r} names no dataset",
            fix=f"{closest(selector.strip('+'), declared)}"
            f"write name, +name or name+; names are {listed(declared)}",
        )


class ArgumentRefusedError(CommandError):
    """A command-line value cannot be read."""

    code = "ARGUMENT_REFUSED"

    def __init__(self, option: str, value: str, *, expected: str) -> None:
        super().__init__(f"{option} {value!r} cannot be read", fix=f"write {expected}")


class SqlFailedError(CommandError):
    """A query typed by the user does not run."""

    code = "SQL_FAILED"

    def __init__(self, *, cause: str, known: Sequence[str]) -> None:
        super().__init__(f"the query does not run: {cause}", fix=f"tables are {listed(known)}")


class AlreadyRunningError(CommandError):
    """The app was started twice in one process."""

    code = "ALREADY_RUNNING"

    def __init__(self, app: str) -> None:
        super().__init__(f"app {app!r} runs already in this process", fix="app.stop() first")


class PathMissingError(DeclarationError):
    """A source reads a path that does not exist."""

    code = "PATH_MISSING"

    def __init__(self, path: str, *, source: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} reads {path!r}, which does not exist",
            fix="make the folder, or mend the path (relative paths start where the command runs)",
            at=at,
        )


class FormatRefusedError(DeclarationError):
    """A connector cannot read the format asked for."""

    code = "FORMAT_REFUSED"

    def __init__(self, got: str, *, source: str, allowed: Sequence[str], at: Location) -> None:
        super().__init__(
            f"source {source!r} has format={got!r}",
            fix=f"{closest(got, allowed)}formats are {', '.join(allowed)}",
            at=at,
        )


class ShareRefusedError(DeclarationError):
    """A generator's setting is out of range."""

    code = "SHARE_REFUSED"

    def __init__(
        self, option: str, value: float, *, source: str, expected: str, at: Location
    ) -> None:
        super().__init__(f"source {source!r} has {option}={value!r}", fix=f"give {expected}", at=at)


class BrokerUnreachableError(ClusterError):
    """No Kafka broker answers."""

    code = "BROKER_UNREACHABLE"
    transient = True

    def __init__(self, servers: str, *, source: str, at: Location, why: str = "") -> None:
        super().__init__(
            f"source {source!r}: no Kafka broker answers at {servers}{why and f': {why}'}",
            fix="start the broker, or mend bootstrap_servers",
            at=at,
        )


class BrokerStartError(ClusterError):
    """The Kafka broker of a test does not start."""

    code = "BROKER_START"

    def __init__(self, cause: str, *, log: str) -> None:
        super().__init__(
            f"the Kafka broker for tests does not start: {cause}",
            fix=f"read {log}",
        )


class BrokerLostError(ClusterError):
    """The Kafka broker went away while a query was reading."""

    code = "BROKER_LOST"
    transient = True

    def __init__(self, query: str, *, at: Location) -> None:
        super().__init__(
            f"query {query!r}: no Kafka broker answers any more; what was committed is safe",
            fix="start the broker: the run goes on by itself, or start it again",
            at=at,
        )


class RecordsLostError(ClusterError):
    """Kafka has deleted records before they were read."""

    code = "RECORDS_LOST"

    def __init__(self, query: str, *, cause: str, at: Location) -> None:
        super().__init__(
            f"query {query!r}: Kafka no longer has the records that come next: {cause}",
            fix="bring the topic back, or set the option failOnDataLoss=False to go on without",
            at=at,
        )


class TopicMissingError(ClusterError):
    """The Kafka topic does not exist."""

    code = "TOPIC_MISSING"

    def __init__(
        self, topic: str, *, servers: str, source: str, topics: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"source {source!r}: topic {topic!r} does not exist at {servers}",
            fix=f"{closest(topic, topics)}create the topic, or mend its name",
            at=at,
        )


class StorageFullError(ClusterError):
    """No space is left where the home is."""

    code = "STORAGE_FULL"
    transient = True

    def __init__(self, home: str) -> None:
        super().__init__(
            f"no space is left for home {home!r}; what was committed is safe",
            fix="free some space: the run goes on by itself, or start it again",
        )


class SparkFailedError(ClusterError):
    """A query failed inside Spark."""

    code = "SPARK_FAILED"
    transient = True

    def __init__(self, query: str, *, condition: str, cause: str, log: str) -> None:
        super().__init__(
            f"query {query!r} failed in Spark ({condition}): {cause}",
            fix=f"the whole trace is in {log}",
        )


class DriverLostError(ClusterError):
    """The JVM went away."""

    code = "DRIVER_LOST"

    def __init__(self, *, log: str) -> None:
        super().__init__(
            "Spark's JVM is gone; what was committed is safe",
            fix=f"start the app again; if memory ran out, raise spark.driver.memory (see {log})",
        )


class UnexpectedError(ClusterError):
    """Something happened that Millstream does not know."""

    code = "UNEXPECTED"

    def __init__(self, cause: str, *, trace: str) -> None:
        super().__init__(
            f"this should not happen: {cause}",
            fix=f"what was committed is safe; start again, and report the trace in {trace}",
        )


class QueryStoppedError(ClusterError):
    """Some queries of the run stopped for good."""

    code = "QUERY_STOPPED"

    def __init__(self, names: Sequence[str], *, stale: Sequence[str]) -> None:
        also = f"; stale because of it: {listed(stale)}" if stale else ""
        super().__init__(f"stopped for good: {listed(names)}{also}", fix="see the errors above")


class NotEqualError(MillstreamError):
    """A batch run and the stream's tables differ."""

    code = "NOT_EQUAL"

    def __init__(self, tables: Sequence[str]) -> None:
        super().__init__(
            f"the batch answer differs from the stream's: {listed(tables)}",
            fix="`millstream run APP --once` first, if the stream had not read all that is landed; "
            "else make the query depend on nothing but its input: no rand(), no now(), no order",
        )


# -- schemas -----------------------------------------------------------------------------------


class SchemaError(DeclarationError):
    """A schema cannot be read, or its format cannot carry it."""

    code = "SCHEMA"

    def __init__(
        self, fault: str, *, fix: str, text: str | None = None, offset: int | None = None
    ) -> None:
        self.text, self.offset = text, offset
        where = ""
        if text is not None and offset is not None:
            near = text[offset : offset + 24]
            place = f"character {offset + 1}, near {near!r}" if near.strip() else "its end"
            where = f" (in the schema text, at {place})"
        super().__init__(fault + where, fix=fix)


class BatchNotBegunError(ClusterError):
    """A batch was not begun, because the query is being stopped."""

    code = "BATCH_NOT_BEGUN"
    transient = True

    def __init__(self, query: str, *, batch: int) -> None:
        super().__init__(
            f"batch {batch} of {query!r} was not begun: the query is being stopped",
            fix="none needed: the batch runs at the next start",
        )


class FaultsError(DeclarationError):
    """The application has several faults."""

    code = "FAULTS"

    def __init__(self, faults: Sequence[MillstreamError]) -> None:
        self.faults = tuple(faults)
        told = "\n".join(str(fault) for fault in faults)
        super().__init__(f"{len(faults)} faults:\n{told}", fix="mend each of them")
