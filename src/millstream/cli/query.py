"""`millstream query`: SQL on the tables of an app, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.option import (  # noqa: TC001 - typer reads annotations
    HomeDir,
    Json,
    ProfileName,
)
from millstream.cli.text import counted, print_table
from millstream.views import AnswerView, to_json

if TYPE_CHECKING:
    from millstream.lake.home import Home


def query(
    app: Annotated[str, typer.Argument(metavar="[APP]", help="The app file or folder.")],
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="One SELECT.")] = None,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    json: Json = False,
) -> None:
    """Ask the tables of an app a question in SQL."""
    from millstream.app import find_home

    view = read(find_home(app if sql else None, home, profile), sql or app)
    if json:
        print(to_json(view))
    else:
        show(view)


def read(home: Home, sql: str) -> AnswerView:
    """Answer a query over a home in which something has run."""
    from millstream.lake.sql import query as answer

    home.verify_in_use()
    return AnswerView(*answer(home, sql))


def show(view: AnswerView) -> None:
    """Print an answer."""
    print_table(view.columns, [[cell(value) for value in row] for row in view.rows])
    print(f"\n  {counted(len(view.rows), 'row')}")


def cell(value: Any) -> str:
    """Write one value of a row."""
    return "NULL" if value is None else str(value)
