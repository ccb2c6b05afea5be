"""Errors of sources that read a table of another app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import ClusterError, DeclarationError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class SourceHomeError(DeclarationError):
    """A source reads a home in which no app is deployed."""

    code = "SOURCE_HOME"

    def __init__(self, home: str, *, source: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} reads the home {home!r}, where no app is deployed",
            fix="mend the path (relative paths start where the command runs), "
            "or run the other app first",
            at=at.of("home"),
        )


class SourceTableError(DeclarationError):
    """A source reads a table that another app's home does not have."""

    code = "SOURCE_TABLE"

    def __init__(
        self, table: str, *, home: str, source: str, known: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"source {source!r} reads the table {table!r} of {home!r}, which is not there",
            fix=f"{closest(table, known)}the home has {listed(known)}; "
            "a table is there once its app has run",
            at=at.of("dataset"),
        )


class TableChangesError(DeclarationError):
    """A source reads a table of another app whose rows change."""

    code = "TABLE_CHANGES"

    def __init__(
        self,
        table: str,
        *,
        mode: str,
        home: str,
        source: str,
        others: Sequence[str],
        at: Location,
    ) -> None:
        super().__init__(
            f"source {source!r} reads the table {table!r} of {home!r}, "
            f"whose rows change (mode={mode!r})",
            fix="read one whose rows do not, and compute the answer here; "
            f"the home has {listed(others)}; or have the other app keep it with mode='append'",
            at=at.of("dataset"),
        )


class ColumnsDifferError(DeclarationError):
    """A table of another app has other columns than a source says."""

    code = "COLUMNS_DIFFER"

    def __init__(
        self, table: str, *, wanted: str, got: str, home: str, source: str, at: Location
    ) -> None:
        super().__init__(
            f"source {source!r} wants the columns {wanted!r} of the table {table!r} of {home!r}, "
            f"which has {got!r}",
            fix="write the columns as the table has them, or leave them out",
            at=at.of("columns"),
        )


class EventTimeUnboundedError(DeclarationError):
    """A table of another app does not say how far behind a row of it may come."""

    code = "EVENT_TIME_UNBOUNDED"

    def __init__(self, column: str, *, source: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} has event_time={column!r}, but the table it reads is made from "
            "several inputs, so that a row may come any time behind another",
            fix="leave event_time out, or have the other app window the rows: "
            "the answer in append mode, with window_time(window) as a column, comes in order",
            at=at.of("event_time"),
        )


class HistoryGoneError(ClusterError):
    """A table of another app is no longer the one that a source has read from."""

    code = "HISTORY_GONE"

    def __init__(
        self, table: str, *, home: str, source: str, version: int, why: str, at: Location
    ) -> None:
        super().__init__(
            f"source {source!r} has read the table {table!r} of {home!r} to version {version}, "
            f"and {why}",
            fix="if it was set back by mistake, restore it; if it was made anew, give the source "
            "another name, or move the home of this app away, to read it from its beginning",
            at=at,
        )


class FrontierPassedError(ClusterError):
    """A watermark would pass the frontier of the table of another app it follows."""

    code = "FRONTIER_PASSED"

    def __init__(self, source: str, *, watermark: str, frontier: str, at: Location) -> None:
        super().__init__(
            f"the watermark of source {source!r} would be {watermark}, past the frontier of the "
            f"table it reads, {frontier}: rows that are still to come would be late",
            fix="run it again: the other app waits longer than it did when this run began",
            at=at,
        )
