"""Errors whose remedy is in the declarations of the application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import DeclarationError, Location, MillstreamError, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


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
            at=at and at.of("name"),
        )


class DuplicateNameError(DeclarationError):
    """Two datasets have one name."""

    code = "DUPLICATE_NAME"

    def __init__(self, name: str, *, first: Location, at: Location) -> None:
        super().__init__(
            f"dataset {name!r} is declared twice, first at {first.of('name')}",
            fix="rename one of the two",
            at=at.of("name"),
        )


class UnknownInputError(DeclarationError):
    """A dataset reads a name that nothing declares."""

    code = "UNKNOWN_INPUT"

    def __init__(self, name: str, *, dataset: str, declared: Sequence[str], at: Location) -> None:
        self.name = name
        super().__init__(
            f"{dataset!r} reads {name!r}, which is not declared",
            fix=f"{closest(name, declared)}declared names are {listed(declared)}",
            at=at.of("from", name),
        )


class CycleError(DeclarationError):
    """Datasets read each other in a circle."""

    code = "CYCLE"

    def __init__(self, names: Sequence[str], *, at: Location) -> None:
        super().__init__(
            f"datasets read each other in a circle: {' reads '.join(repr(n) for n in names)}",
            fix="break the circle: one of them must not read the next",
            at=at.of("from", names[1]),
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
            at=at.of(option),
        )


class UnknownOptionError(DeclarationError):
    """An option does not exist."""

    code = "UNKNOWN_OPTION"

    def __init__(self, option: str, *, dataset: str, known: Sequence[str], at: Location) -> None:
        super().__init__(
            f"{dataset!r} has the option {option!r}, which does not exist",
            fix=f"{closest(option, known)}options are {listed(known)}",
            at=at.of(option),
        )


class OptionMissingError(DeclarationError):
    """A source in SQL lacks an option that its connector cannot do without."""

    code = "OPTION_MISSING"

    def __init__(self, option: str, *, source: str, connector: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} reads {connector} and has no {option}",
            fix=f"add a line to the header: -- {option}: …",
            at=at,
        )


class OptionTwiceError(DeclarationError):
    """A header says one thing twice."""

    code = "OPTION_TWICE"

    def __init__(self, option: str, *, dataset: str, first: Location, at: Location) -> None:
        super().__init__(
            f"{dataset!r} has the option {option!r} twice, first at {first}",
            fix="keep one of the two",
            at=at,
        )


class ValueRefusedError(DeclarationError):
    """An option in a header has a value of the wrong kind."""

    code = "VALUE_REFUSED"

    def __init__(
        self, option: str, value: str, *, dataset: str, expected: str, at: Location
    ) -> None:
        super().__init__(
            f"{dataset!r} has the option {option!r} with {value!r}",
            fix=f"write {expected}",
            at=at,
        )


class HeaderLineError(DeclarationError):
    """A line of a header is not an option and its value."""

    code = "HEADER_LINE"

    def __init__(self, line: str, *, dataset: str, at: Location) -> None:
        super().__init__(
            f"the header of {dataset!r} has the line {line!r}, which is no option",
            fix='write -- option: value, or -- expect "rule": condition; '
            "other comments come after an empty line, or in /* … */",
            at=at,
        )


class NotATableError(DeclarationError):
    """A view in SQL has an option that only tables have."""

    code = "NOT_A_TABLE"

    def __init__(self, option: str, *, view: str, at: Location) -> None:
        super().__init__(
            f"view {view!r} has the option {option!r}, which only tables have",
            fix="add -- table: append, update or complete to keep its answer as a table, "
            "or leave the option out",
            at=at,
        )


class SourceQueryError(DeclarationError):
    """A source in SQL has a query."""

    code = "SOURCE_QUERY"

    def __init__(self, source: str, *, at: Location) -> None:
        super().__init__(
            f"source {source!r} has a query below its header",
            fix=f"a source reads no dataset: move the query to a file of its own, FROM {source}",
            at=at,
        )


class NoSqlFilesError(DeclarationError):
    """A folder holds no SQL files."""

    code = "NO_SQL_FILES"

    def __init__(self, folder: str, *, at: Location) -> None:
        super().__init__(
            f"folder {folder!r} holds no .sql files",
            fix="name the folder they are in; it is looked for beside the file that names it",
            at=at,
        )


class DurationRefusedError(DeclarationError):
    """A length of time cannot be read."""

    code = "DURATION_REFUSED"

    def __init__(self, option: str, value: str, *, dataset: str, at: Location | None) -> None:
        super().__init__(
            f"{dataset!r} has {option}={value!r}, which is not a length of time",
            fix='write a number and a unit, such as "10 minutes", "1 day" or "500 ms"',
            at=at and at.of(option),
        )


class KeyMissingError(DeclarationError):
    """A table in update mode has no key."""

    code = "KEY_MISSING"

    def __init__(self, table: str, *, at: Location) -> None:
        super().__init__(
            f"table {table!r} has mode='update' and no key",
            fix='say which columns identify a row: key=["…"]',
            at=at.of("mode"),
        )


class KeyUnusedError(DeclarationError):
    """A table has a key that its mode does not use."""

    code = "KEY_UNUSED"

    def __init__(self, table: str, *, mode: str, at: Location) -> None:
        super().__init__(
            f"table {table!r} has a key, which mode={mode!r} does not use",
            fix="use mode='update' to keep one row per key, or leave the key out",
            at=at.of("key"),
        )


class WatermarkMissingError(DeclarationError):
    """A source has an event time without a watermark, or the other way round."""

    code = "WATERMARK_MISSING"

    def __init__(self, source: str, *, has: str, lacks: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} has {has} and no {lacks}",
            fix='give both, such as event_time="at", watermark="10 minutes"',
            at=at.of("watermark" if lacks == "event_time" else "event_time"),
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
            at=at.of("event_time"),
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
            at=at.of("mode"),
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
            at=at.of(option),
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
            at=at.of(option),
        )


class LiveInBatchError(DeclarationError):
    """A batch run meets a source of which nothing is landed."""

    code = "LIVE_IN_BATCH"

    def __init__(self, source: str, *, at: Location) -> None:
        super().__init__(
            f"source {source!r} is live, so nothing of it is landed to run a batch over",
            fix="leave live=True out to land it",
            at=at.of("live"),
        )


class PathMissingError(DeclarationError):
    """A source reads a path that does not exist."""

    code = "PATH_MISSING"

    def __init__(self, path: str, *, source: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} reads {path!r}, which does not exist",
            fix="make the folder, or mend the path (relative paths start where the command runs)",
            at=at.of("path"),
        )


class FormatRefusedError(DeclarationError):
    """A connector cannot read the format asked for."""

    code = "FORMAT_REFUSED"

    def __init__(self, got: str, *, source: str, allowed: Sequence[str], at: Location) -> None:
        super().__init__(
            f"source {source!r} has format={got!r}",
            fix=f"{closest(got, allowed)}formats are {', '.join(allowed)}",
            at=at.of("format"),
        )


class ShareRefusedError(DeclarationError):
    """A generator's setting is out of range."""

    code = "SHARE_REFUSED"

    def __init__(
        self, option: str, value: float, *, source: str, expected: str, at: Location
    ) -> None:
        super().__init__(
            f"source {source!r} has {option}={value!r}", fix=f"give {expected}", at=at.of(option)
        )


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


class FaultsError(DeclarationError):
    """The application has several faults."""

    code = "FAULTS"

    def __init__(self, faults: Sequence[MillstreamError]) -> None:
        self.faults = tuple(faults)
        told = "\n".join(str(fault) for fault in faults)
        super().__init__(f"{len(faults)} faults:\n{told}", fix="mend each of them")
