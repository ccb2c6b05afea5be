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


class LiveInBatchError(DeclarationError):
    """A batch run meets a source of which nothing is landed."""

    code = "LIVE_IN_BATCH"

    def __init__(self, source: str, *, at: Location) -> None:
        super().__init__(
            f"source {source!r} is live, so nothing of it is landed to run a batch over",
            fix="leave live=True out to land it",
            at=at,
        )


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
