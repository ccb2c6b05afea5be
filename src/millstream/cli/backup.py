"""`millstream backup`: a copy of a home, also while its driver runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli import text
from millstream.cli.option import AppIfAny, ForDriver, HomeDir, Json, ProfileName, length_of_time
from millstream.views.json_text import to_json
from millstream.views.sizes import CopyView

if TYPE_CHECKING:
    from millstream.lake.home import Home


def backup(
    app: AppIfAny = None,
    *,
    into: Annotated[str, typer.Option("--into", metavar="DIR", help="A new folder.")],
    wait: ForDriver = "10m",
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Copy a home as it is between two batches; a running driver goes on."""
    from millstream.loading import find_home
    from millstream.upkeep.backup import copy_snapshot, refuse_if_taken

    place, target = find_home(app, home, profile), Path(into).absolute()
    place.verify_in_use()
    refuse_if_taken(target)
    snapshot = _snapshot(place, length_of_time("--wait", wait).total_seconds())
    view = CopyView(str(place.path), str(target), copy_snapshot(snapshot, target))
    print(to_json(view)) if json else show(view)


def show(view: CopyView) -> None:
    """Print what was copied."""
    print(f"  ✓ {text.size(view.size)} copied from {view.source} to {view.target}")


def _snapshot(home: Home, wait_s: float) -> Path:
    from millstream.lake.lease import Lease
    from millstream.upkeep.backup import take_snapshot
    from millstream.upkeep.maintain import by_driver

    if by_driver(home, "snapshot", wait_s=wait_s):
        return home.maintenance / "snapshot"
    with Lease.acquire(home):
        return take_snapshot(home)
