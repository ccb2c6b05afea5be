"""From a query in Spark's dialect to a query for DuckDB."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.errors import closest, fault, listed
from millstream.lake.travel import existing_version, version_as_of
from millstream.sql.duckdb_query import DuckDBQuery
from millstream.sql.frontier import FRONTIER, frontier_table
from millstream.sql.functions import MACROS
from millstream.sql.live_table import LiveTable
from millstream.sql.parse import parse, too_deep
from millstream.sql.queries import Queries
from millstream.sql.refusal import location_of, refuse
from millstream.sql.sketch import named_in
from millstream.sql.types import quoted

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.sql.scope import Columns


def translate(home: Home, text: str) -> DuckDBQuery:
    """Translate a query over the tables of a home.

    Raises:
        SQL_SYNTAX: It cannot be read.
        SQL_NOT_READING: It is not one reading statement.
        SQL_NOT_TRANSLATED: Only Spark can answer it.
        UNKNOWN_TABLE: It names a table that is not there.
        UNKNOWN_COLUMN: It names a column that is not there.
    """
    tables = _Tables(home)
    try:
        statement = parse(text)
        if parameter := statement.find(exp.Parameter, exp.Placeholder):
            refuse(parameter, "a parameter")
        answer = Queries(tables).translate(statement)
    except RecursionError as error:
        raise too_deep() from error
    for name, kind in answer.columns:
        if not kind.is_known:
            refuse(statement, f"column {name!r}, which is of type {kind}")
    views = {view: live.text for view, live in tables.opened.values()}
    return DuckDBQuery(
        text=answer.text,
        columns=tuple(name for name, _ in answer.columns),
        macros=_needed(answer.text, *views.values()),
        views=views,
        sketches=named_in(answer.text),
        files=tuple(file for _, live in tables.opened.values() for file in live.files),
        deleted={
            name: bits for _, live in tables.opened.values() for name, bits in live.deleted.items()
        },
    )


def _needed(*texts: str) -> tuple[str, ...]:
    """Choose the macros that texts use, or that others use, which all come later."""
    needed: list[str] = []
    for macro in reversed(MACROS):
        name = macro.partition("(")[0]
        if any(f"{name}(" in text for text in (*texts, *needed)):
            needed.append(macro)
    return tuple(reversed(needed))


@dataclass(slots=True)
class _Tables:
    """The tables of a home, each opened once for each version that is asked for."""

    home: Home
    opened: dict[tuple[str, int | None], tuple[str, LiveTable]] = field(default_factory=dict)

    def read(self, table: exp.Table) -> tuple[str, Columns]:
        if table.name.lower() == FRONTIER and not table.args.get("db"):
            return self._frontier(table)
        name = {known.lower(): known for known in self.home.tables}.get(table.name.lower())
        if name is None or table.args.get("db"):
            written = ".".join(part.name for part in table.parts)
            raise fault(
                "UNKNOWN_TABLE",
                at=location_of(table),
                name=written,
                nearest=closest(written, self.home.tables),
                known=listed(self.home.tables),
            )
        key = (name, self._version(name, table))
        if key not in self.opened:
            live = LiveTable.open(name, self.home.existing(name), key[1])
            self.opened[key] = (f"_t{len(self.opened)}", live)
        view, live = self.opened[key]
        return quoted(view), live.columns

    def _frontier(self, table: exp.Table) -> tuple[str, Columns]:
        if table.args.get("version"):
            refuse(table, f"{FRONTIER} as it was")
        key = (FRONTIER, None)
        if key not in self.opened:
            self.opened[key] = (f"_t{len(self.opened)}", frontier_table(self.home))
        view, live = self.opened[key]
        return quoted(view), live.columns

    def _version(self, name: str, table: exp.Table) -> int | None:
        version = table.args.get("version")
        if version is None:
            return None
        literal = version.expression
        if not isinstance(literal, exp.Literal) or version.args.get("kind") != "AS OF":
            refuse(table)
        path = self.home.existing(name)
        if version.name == "TIMESTAMP":
            return version_as_of(path, name, literal.name)
        return existing_version(
            path, name, int(literal.name) if literal.name.isdigit() else refuse(table)
        )
