"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.app import DEFAULT_FILE

AppFile = Annotated[
    str,
    typer.Argument(
        metavar="APP",
        help="The app: file.py, file.py:name of several, or a folder with app.py or SQL files.",
    ),
]
HomeDir = Annotated[
    str | None,
    typer.Option("--home", metavar="DIR", help="Where the app is deployed [.millstream/<app>]."),
]
Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="The Spark master [local[*]].")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

__all__ = ["DEFAULT_FILE", "AppFile", "HomeDir", "Json", "Master"]
