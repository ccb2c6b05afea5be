"""`millstream settings`: every setting of an app, and where it came from."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.cli.option import DEFAULT_FILE, AppFile, HomeDir, Json, Master, ProfileName
from millstream.cli.text import format_fault, print_table
from millstream.loading import load
from millstream.views.json_text import to_json
from millstream.views.report import SettingsView


def settings(
    app: AppFile = DEFAULT_FILE,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    master: Master = None,
    schema: Annotated[
        bool,
        typer.Option("--schema", help="Print the JSON Schema of millstream.toml, for editors."),
    ] = False,
    json: Json = False,
) -> None:
    """Show every setting and where it came from. Exit code 1 if any is wrong."""
    if schema:
        show_schema()
        return
    loaded = load(app, profile)
    view = SettingsView.of(loaded.settings(home=home, master=master), loaded.bound.faults)
    if json:
        print(to_json(view))
    else:
        show(view)
    raise typer.Exit(1 if view.faults else 0)


def show(view: SettingsView) -> None:
    """Print settings and what is wrong with them."""
    rows = [[setting.name, setting.origin, setting.value] for setting in view.settings]
    print_table(("setting", "origin", "value"), rows)
    for fault in view.faults:
        print(f"\n{format_fault(fault)}")


def show_schema() -> None:
    """Print the JSON Schema of millstream.toml."""
    import json

    from millstream.bind.toml_reference import json_schema

    print(json.dumps(json_schema(), indent=2))
