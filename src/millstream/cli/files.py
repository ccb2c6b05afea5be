"""`millstream files`: list the files that sources could not read, and have them read again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from millstream.cli import text
from millstream.cli.option import AppIfAny, HomeDir, Json, ProfileName  # noqa: TC001 - typer reads annotations
from millstream.cli.usage import Commands
from millstream.views import files as view
from millstream.views.json_text import to_json

_LIST = "list"


class _FileCommands(Commands):
    """Commands of which `list` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a first word that is no command as the app whose files are listed."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args.insert(0, _LIST)
        return super().parse_args(ctx, args)


files = typer.Typer(
    name="files",
    cls=_FileCommands,
    help="List the files that could not be read, or have them read again.",
    rich_markup_mode=None,
)

OneSource = Annotated[
    str | None, typer.Option("--source", metavar="NAME", help="Only this source [all].")
]


@files.command(_LIST)
def list_(
    app: AppIfAny = None,
    *,
    source: OneSource = None,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """List the files that sources have set aside, and why."""
    from millstream.loading import find_home

    shown = view.FilesView.of(find_home(app, home, profile), source)
    print(to_json(shown)) if json else _print(shown)


@files.command()
def retry(
    app: AppIfAny = None,
    *,
    source: OneSource = None,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Read files again that were set aside. The running driver does it, or the next one."""
    from millstream.loading import find_home

    shown = view.retry(find_home(app, home, profile), source)
    if json:
        print(to_json(shown))
    else:
        print(f"  ✓ {text.counted(len(shown.files), 'file')} will be read again")


def _print(shown: view.FilesView) -> None:
    rows = [[file.source, str(file.batch), file.path, file.reason] for file in shown.files]
    if rows:
        text.print_table(("source", "batch", "file", ""), rows)
        print()
    print(f"  {text.counted(len(rows), 'file')} set aside: {shown.home}")
