"""`millstream graph`: the datasets of an app and what each reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.option import DEFAULT_FILE, AppFile, Exclude, Json, ProfileName, Select
from millstream.errors import closest, fault
from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.views.graph import GraphView


def graph(
    app: AppFile = DEFAULT_FILE,
    *,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="text, mermaid, svg or json.")
    ] = "text",
    select: Select = None,
    exclude: Exclude = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Draw the datasets of an app and what each reads."""
    from millstream.views.graph import GraphView

    write = _writer("json" if json else form)
    loaded = load(app, profile)
    loaded.raise_faults()
    print(write(GraphView.of(loaded.graph, loaded.graph.select(select, exclude))))


def _writer(form: str) -> Callable[[GraphView], str]:
    from millstream.views import drawing
    from millstream.views.json_text import to_json

    writers: dict[str, Callable[[GraphView], str]] = {
        "text": drawing.to_text,
        "mermaid": drawing.to_mermaid,
        "svg": drawing.to_svg,
        "json": to_json,
    }
    if form not in writers:
        expected = f"text, mermaid, svg or json; {closest(form, writers)}".rstrip("; ")
        raise fault("ARGUMENT_REFUSED", option="--format", value=form, expected=expected)
    return writers[form]
