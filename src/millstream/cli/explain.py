"""`millstream explain`: the page about an error, or the list of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.option import Json  # noqa: TC001 - typer reads annotations
from millstream.cli.text import is_terminal
from millstream.errors import catalogue
from millstream.views.json_text import to_json
from millstream.views.report import ErrorView

if TYPE_CHECKING:
    from collections.abc import Sequence


def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE]", help="The word in brackets, upper or lower case."),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Explain an error and how to fix it. Without a code, list them all."""
    if code is None:
        _list(json=json)
        return
    page = catalogue.find(code)
    view = ErrorView.of(page)
    if json:
        print(to_json({"error": view, "page": str(page)}))
    else:
        show(view, str(page))


def _list(*, json: bool) -> None:
    views = [ErrorView.of(page) for page in catalogue.pages()]
    if json:
        print(to_json(views))
    else:
        show_all(views)


def show(view: ErrorView, page: str) -> None:
    """Print a page, and what its error does to a command."""
    facts = f"{view.branch}: exit code {view.exit_code}."
    if view.is_transient:
        facts += " To try again, with nothing changed, may succeed."
    if is_terminal():
        from rich.console import Console
        from rich.markdown import Markdown

        console = Console()
        console.print(Markdown(f"{page}\n{facts}"), width=min(console.width, 100))
    else:
        print(f"{page}\n{facts}")


def show_all(views: Sequence[ErrorView]) -> None:
    """Print every code with what it means, by who must act."""
    width = max(len(view.code) for view in views)
    for kind, heading in catalogue.HEADINGS.items():
        print(f"{heading}: exit code {catalogue.exit_code(kind)}")
        for view in views:
            if view.branch == heading:
                print(f"  {view.code:<{width}}  {view.summary}")
        print()
    print("  millstream explain CODE")
