"""`millstream restore`: a home made of a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millstream.cli.backup import show
from millstream.cli.option import AppIfAny, HomeDir, Json, ProfileName  # noqa: TC001 - typer reads annotations
from millstream.views.json_text import to_json
from millstream.views.sizes import CopyView


def restore(
    app: AppIfAny = None,
    *,
    backup: Annotated[str, typer.Option("--from", metavar="DIR", help="A folder of a backup.")],
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Make a home of a backup; the home must not be there."""
    from millstream.loading import find_home
    from millstream.upkeep.backup import restore as copy_back

    source, place = Path(backup).absolute(), find_home(app, home, profile)
    view = CopyView(str(source), str(place.path), copy_back(source, place))
    print(to_json(view)) if json else show(view)
