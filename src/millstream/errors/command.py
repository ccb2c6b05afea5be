"""Errors of what was asked for: the command, its arguments, its home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import CommandError, MillstreamError, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.errors.base import Location


class AppFileMissingError(CommandError):
    """The app file does not exist."""

    code = "APP_FILE_MISSING"

    def __init__(self, file: str, *, nearby: Sequence[str]) -> None:
        super().__init__(
            f"app file {file!r} does not exist",
            fix=f"{closest(file, nearby)}name the app file; Python files here: {listed(nearby)}",
        )


class SqlFileAloneError(CommandError):
    """One file of SQL was named as an app."""

    code = "SQL_FILE_ALONE"

    def __init__(self, file: str, *, folder: str) -> None:
        super().__init__(
            f"{file!r} is one dataset, not an app",
            fix=f"name the folder whose files are the app: {folder}",
        )


class HomeLockedError(CommandError):
    """Another driver holds the home."""

    code = "HOME_LOCKED"

    def __init__(self, home: str, *, pid: int, host: str, since: str) -> None:
        self.pid, self.host = pid, host
        super().__init__(
            f"home {home!r} is held by pid {pid} on {host} since {since}",
            fix=f"stop that driver with `millstream stop --home {home}` on {host}, or use another "
            "--home; if it hangs, `millstream run --takeover` shuts it out",
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


class HomeEmptyError(CommandError):
    """Nothing has run in the home yet."""

    code = "HOME_EMPTY"

    def __init__(self, home: str) -> None:
        super().__init__(
            f"nothing has run in home {home!r} yet",
            fix="`millstream run APP` first, or name another --home",
        )


class NothingLandedError(CommandError):
    """A selected dataset reads something that has never run."""

    code = "NOTHING_LANDED"

    def __init__(self, dataset: str, *, reads: str) -> None:
        super().__init__(
            f"{dataset!r} reads {reads!r}, which has no table yet",
            fix=f"run {reads!r} first: `millstream run APP --once --select +{reads}`",
        )


class UnknownTableError(CommandError):
    """A name that is not a stored dataset was asked for."""

    code = "UNKNOWN_TABLE"

    def __init__(self, name: str, *, known: Sequence[str], at: Location | None = None) -> None:
        super().__init__(
            f"no table {name!r} in this home",
            fix=f"{closest(name, known)}tables are {listed(known)}",
            at=at,
        )


class UnknownVersionError(CommandError):
    """A version of a table was asked for that does not exist."""

    code = "UNKNOWN_VERSION"

    def __init__(self, table: str, *, version: int, latest: int) -> None:
        super().__init__(
            f"table {table!r} has no version {version}",
            fix=f"versions run from 0 to {latest}",
        )


class UnknownMomentError(CommandError):
    """A table was asked for as of a moment that it has no version of."""

    code = "UNKNOWN_MOMENT"

    def __init__(self, table: str, *, moment: str, first: str, last: str) -> None:
        super().__init__(
            f"table {table!r} has no version as of {moment}",
            fix=f"its commits are from {first} to {last}",
        )


class UnknownSelectionError(CommandError):
    """--select or --exclude names nothing of the app."""

    code = "UNKNOWN_SELECTION"

    def __init__(self, selector: str, *, option: str, declared: Sequence[str]) -> None:
        super().__init__(
            f"{option} {selector!r} names no dataset",
            fix=f"{closest(selector.strip('+0123456789'), declared)}"
            f"write name, +name, name+ or 2+name; names are {listed(declared)}",
        )


class NothingSelectedError(CommandError):
    """--exclude leaves nothing of what --select chose."""

    code = "NOTHING_SELECTED"

    def __init__(self, excluded: Sequence[str]) -> None:
        super().__init__(
            f"--exclude {' '.join(excluded)!r} leaves no dataset", fix="exclude fewer names"
        )


class SelectionWithoutAppError(CommandError):
    """--select was given for a home alone."""

    code = "SELECTION_WITHOUT_APP"

    def __init__(self, home: str) -> None:
        super().__init__(
            f"home {home!r} does not tell which dataset reads which",
            fix="name the app file too, or leave --select and --exclude out",
        )


class UnknownCodeError(CommandError):
    """An error code was asked about that does not exist."""

    code = "UNKNOWN_CODE"

    def __init__(self, given: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no error code {given!r}",
            fix=f"{closest(given, known)}`millstream explain` lists them all",
        )


class ArgumentRefusedError(CommandError):
    """An option of a command has a value that it cannot take."""

    code = "ARGUMENT_REFUSED"

    def __init__(self, option: str, value: str, *, expected: str) -> None:
        super().__init__(f"{option} cannot be {value!r}", fix=f"give {expected}")


class UnknownCommandError(CommandError):
    """A command was typed that does not exist."""

    code = "UNKNOWN_COMMAND"

    def __init__(self, name: str, *, program: str, known: Sequence[str]) -> None:
        super().__init__(
            f"{program} has no command {name!r}",
            fix=f"{closest(name, known)}commands are {listed(known)}",
        )


class UnknownFlagError(CommandError):
    """An option was typed that the command does not have."""

    code = "UNKNOWN_FLAG"

    def __init__(self, flag: str, *, command: str, known: Sequence[str]) -> None:
        super().__init__(
            f"{command} has no option {flag!r}",
            fix=f"{closest(flag, known)}options are {listed(known)}",
        )


class UsageError(CommandError):
    """A command was typed with too few, too many or unreadable words."""

    code = "USAGE"

    def __init__(self, *, command: str, cause: str) -> None:
        super().__init__(f"{command}: {cause}", fix=f"`{command} --help` shows what it takes")


class UnknownDatasetError(CommandError):
    """A name was asked for that neither the app nor its home knows."""

    code = "UNKNOWN_DATASET"

    def __init__(self, name: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no dataset {name!r}",
            fix=f"{closest(name, known)}names are {listed(known)}",
        )


class UnknownTemplateError(CommandError):
    """An app was to be made after a template that does not exist."""

    code = "UNKNOWN_TEMPLATE"

    def __init__(self, name: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no template {name!r}",
            fix=f"{closest(name, known)}templates are {listed(known)}",
        )


class AppNameRefusedError(CommandError):
    """A new app was to have a name that no app can have."""

    code = "APP_NAME_REFUSED"

    def __init__(self, name: str, *, usable: str | None) -> None:
        offer = f"`millstream new {usable}`; " if usable else ""
        super().__init__(
            f"{name!r} cannot name an app",
            fix=f"{offer}a name is a lower-case letter, then letters, digits and single "
            "underscores, at most 63 characters",
        )


class FolderTakenError(CommandError):
    """A new app was to be made where something is already."""

    code = "FOLDER_TAKEN"

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"{folder!r} exists and is not an empty folder",
            fix="choose another name, or empty it; nothing was written",
        )


class DriverElsewhereError(CommandError):
    """The driver to be stopped runs on another machine."""

    code = "DRIVER_ELSEWHERE"

    def __init__(self, home: str, *, pid: int, host: str) -> None:
        super().__init__(
            f"home {home!r} is run by pid {pid} on {host}, which cannot be stopped from here",
            fix=f"on {host}: `millstream stop --home {home}`, or `kill {pid}`",
        )


class DriverForeignError(CommandError):
    """The driver to be stopped belongs to another user."""

    code = "DRIVER_FOREIGN"

    def __init__(self, *, pid: int) -> None:
        super().__init__(
            f"pid {pid} belongs to another user", fix="stop it as that user, or as root"
        )


class SqlFailedError(CommandError):
    """A query stops at a value: a division by zero, a cast of what is no number."""

    code = "SQL_FAILED"

    def __init__(self, *, cause: str) -> None:
        super().__init__(
            f"the query stops: {cause}",
            fix="leave such rows out with WHERE, or allow for them: try_cast, try_divide, nullif",
        )


class SqlSyntaxError(CommandError):
    """A query cannot be read."""

    code = "SQL_SYNTAX"

    def __init__(
        self,
        *,
        cause: str,
        fix: str = "write it in Spark's SQL, on one table or more",
        at: Location | None = None,
    ) -> None:
        super().__init__(f"the query cannot be read: {cause}", fix=fix, at=at)


class SqlNotReadingError(CommandError):
    """Something else than one reading statement was given as a query."""

    code = "SQL_NOT_READING"

    def __init__(self, *, got: str) -> None:
        super().__init__(
            f"a query reads, in one statement; got {got}",
            fix="begin it with SELECT, WITH or VALUES; tables are written by the app alone",
        )


class SqlNotTranslatedError(CommandError):
    """A query has something in it that only Spark can be trusted with."""

    code = "SQL_NOT_TRANSLATED"

    def __init__(self, construct: str, *, at: Location | None = None) -> None:
        self.construct = construct
        super().__init__(
            f"DuckDB is not known to answer this as Spark does: {construct}",
            fix="ask Spark: --engine spark",
            at=at,
        )


class TableNotTranslatedError(CommandError):
    """A table has features that only Spark reads."""

    code = "TABLE_NOT_TRANSLATED"

    def __init__(self, table: str, *, features: Sequence[str]) -> None:
        super().__init__(
            f"table {table!r} has what is not read without Spark: {listed(features)}",
            fix="ask Spark: --engine spark",
        )


class SparkRefusedSqlError(CommandError):
    """Spark, asked for itself, does not answer a query."""

    code = "SPARK_REFUSED_SQL"

    def __init__(self, *, cause: str, known: Sequence[str]) -> None:
        super().__init__(
            f"Spark does not answer the query: {cause}", fix=f"tables are {listed(known)}"
        )


class UnknownColumnError(CommandError):
    """A query names a column that none of its tables has."""

    code = "UNKNOWN_COLUMN"

    def __init__(self, name: str, *, known: Sequence[str], at: Location | None = None) -> None:
        super().__init__(
            f"no column {name!r} here",
            fix=f"{closest(name, known)}columns are {listed(set(known))}",
            at=at,
        )


class AmbiguousColumnError(CommandError):
    """A name in a query means several columns."""

    code = "AMBIGUOUS_COLUMN"

    def __init__(self, name: str, *, at: Location | None = None) -> None:
        super().__init__(
            f"column {name!r} may be of more than one table",
            fix=f"write table.{name}",
            at=at,
        )


class AlreadyRunningError(CommandError):
    """The app was started twice in one process."""

    code = "ALREADY_RUNNING"

    def __init__(self, app: str) -> None:
        super().__init__(f"app {app!r} runs already in this process", fix="call app.stop() first")


class NotEqualError(MillstreamError):
    """A batch run and the stream's tables differ."""

    code = "NOT_EQUAL"

    def __init__(self, tables: Sequence[str]) -> None:
        super().__init__(
            f"the batch answer differs from the stream's: {listed(tables)}",
            fix="`millstream run APP --once` first, if the stream had not read all that is landed; "
            "else make the query depend on nothing but its input: no rand(), no now(), no order",
        )
