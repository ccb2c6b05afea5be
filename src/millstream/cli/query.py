"""`millstream query`: SQL on the tables of an app, without Spark unless it is asked for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.option import (  # noqa: TC001 - typer reads annotations
    HomeDir,
    Json,
    Master,
    ProfileName,
)
from millstream.cli.text import counted, print_table
from millstream.views.shape import AnswerView, to_json

if TYPE_CHECKING:
    from millstream.lake.home import Home


class Engine(StrEnum):
    """What answers a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"


def query(  # noqa: PLR0913 - a command has the options it has
    app: Annotated[str, typer.Argument(metavar="[APP]", help="The app file or folder.")],
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="One SELECT.")] = None,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="What answers; spark knows all of SQL.")
    ] = Engine.DUCKDB,
    master: Master = None,
    json: Json = False,
) -> None:
    """Ask the tables of an app a question in SQL."""
    from millstream.loading import find_home

    place = find_home(app if sql else None, home, profile)
    place.verify_in_use()
    if engine == Engine.DUCKDB:
        view = read(place, sql or app)
    else:
        view = _ask_spark(place, sql or app, master)
    if json:
        print(to_json(view))
    else:
        show(view)


def read(home: Home, sql: str) -> AnswerView:
    """Answer a query over a home in which something has run."""
    from millstream.sql import query as answer

    return AnswerView(*answer(home, sql))


def show(view: AnswerView) -> None:
    """Print an answer."""
    print_table(view.columns, [[cell(value) for value in row] for row in view.rows])
    print(f"\n  {counted(len(view.rows), 'row')}")


def _ask_spark(home: Home, sql: str, master: str | None) -> AnswerView:
    from millstream.cli.quiet import open_quiet_session
    from millstream.settings import resolve_master
    from millstream.sql.engine import query_with_spark

    spark = open_quiet_session("query", resolve_master(master).value, conf={}, log_dir=home.logs)
    return AnswerView(*query_with_spark(spark, home, sql))


def cell(value: Any) -> str:
    """Write one value of a row."""
    return "NULL" if value is None else str(value)
