"""Errors of SQL files: of their headers, and of where they lie."""

from __future__ import annotations

from millstream.errors.base import DeclarationError, Location


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


class NoSqlFilesError(DeclarationError):
    """A folder holds no SQL files."""

    code = "NO_SQL_FILES"

    def __init__(self, folder: str, *, at: Location) -> None:
        super().__init__(
            f"folder {folder!r} holds no .sql files",
            fix="name the folder they are in; it is looked for beside the file that names it",
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


class SourceQueryError(DeclarationError):
    """A source in SQL has a query."""

    code = "SOURCE_QUERY"

    def __init__(self, source: str, *, at: Location) -> None:
        super().__init__(
            f"source {source!r} has a query below its header",
            fix=f"a source reads no dataset: move the query to a file of its own, FROM {source}",
            at=at,
        )


class OptionValueError(DeclarationError):
    """An option in a header has a value of the wrong kind."""

    code = "OPTION_VALUE"

    def __init__(
        self, option: str, value: str, *, dataset: str, expected: str, at: Location
    ) -> None:
        super().__init__(
            f"{dataset!r} has the option {option!r} with {value!r}",
            fix=f"write {expected}",
            at=at,
        )
