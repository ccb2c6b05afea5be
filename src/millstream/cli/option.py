"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.check.names import is_name
from millstream.errors import fault
from millstream.model.duration import parse_duration
from millstream.settings import DEFAULT_FILE

if TYPE_CHECKING:
    from datetime import timedelta


def names_beginning(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a dataset in a shell; with nothing if the app cannot be read."""
    from millstream.loading import load

    try:
        graph = load(context.params.get("app") or DEFAULT_FILE).graph
    except Exception:
        return []
    return [name for name in graph.datasets if name.startswith(incomplete)]


def app_and_name(first: str, second: str | None) -> tuple[str, str]:
    """Return the app and the dataset, typed in either order; the app may be left out.

    >>> app_and_name("app.py", "clean"), app_and_name("clean", "app.py")
    (('app.py', 'clean'), ('app.py', 'clean'))
    >>> app_and_name("clean", None)
    ('app.py', 'clean')
    """
    if second is None:
        return DEFAULT_FILE, first
    is_second = is_name(first) and (not is_name(second) or Path(second).is_dir())
    return (second, first) if is_second and not Path(first).is_dir() else (first, second)


AppFile = Annotated[
    str,
    typer.Argument(
        metavar="APP",
        help="The app: file.py, file.py:name, or a folder with app.py or SQL files.",
    ),
]
AppIfAny = Annotated[
    str | None, typer.Argument(metavar="APP", help="The app file [app.py; not needed with --home].")
]
HomeDir = Annotated[
    str | None,
    typer.Option("--home", metavar="DIR", help="Where the app is deployed [.millstream/<app>]."),
]
Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="The Spark master [local[*]].")
]
ProfileName = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="A profile of millstream.toml [default]."),
]
When = Annotated[
    str | None,
    typer.Option("--trigger", metavar="WHEN", help='Such as "5 seconds" or "realtime".'),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="NAME",
        help="Only name, +name, name+ or 2+name; repeatable.",
        autocompletion=names_beginning,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="NAME",
        help="All but these, written as for --select; repeatable.",
        autocompletion=names_beginning,
    ),
]
ForDriver = Annotated[
    str, typer.Option("--wait", metavar="TIME", help="How long to wait for a running driver.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def length_of_time(option: str, text: str) -> timedelta:
    """Read a length of time.

    Raises:
        ARGUMENT_REFUSED: It is none.
    """
    try:
        return parse_duration(text)
    except ValueError:
        expected = 'a length of time such as 60s or "5 minutes"'
        raise fault("ARGUMENT_REFUSED", option=option, value=text, expected=expected) from None


__all__ = [
    "DEFAULT_FILE",
    "AppFile",
    "AppIfAny",
    "Exclude",
    "ForDriver",
    "HomeDir",
    "Json",
    "Master",
    "ProfileName",
    "Select",
    "When",
    "app_and_name",
    "length_of_time",
    "names_beginning",
]
