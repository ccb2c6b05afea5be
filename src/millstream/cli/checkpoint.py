"""`millstream checkpoint`: what is wrong with Spark's checkpoints, and their repair."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.option import DEFAULT_FILE, AppFile, AppIfAny, HomeDir, Json, ProfileName
from millstream.cli.text import counted, print_table
from millstream.cli.usage import Commands
from millstream.loading import find_home, load
from millstream.views.json_text import to_json
from millstream.views.report import CheckpointsView, RepairView

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.checkpoint import Finding
    from millstream.lake.home import Home
    from millstream.repair.mend import Remedy
    from millstream.repair.repair import Repair

checkpoint = typer.Typer(
    name="checkpoint",
    cls=Commands,
    help="Check Spark's checkpoints, repair them, or have answers computed again.",
    rich_markup_mode=None,
)


@checkpoint.command()
def inspect(
    app: AppIfAny = None,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    json: Json = False,
) -> None:
    """Check for damage; exit 3 if there is any that would stop a run."""
    from millstream.checkpoint.health import examine

    place = find_home(app, home, profile)
    place.verify_in_use()
    view = CheckpointsView.of(place, examine(place))
    if json:
        print(to_json(view))
    else:
        show(view)
    raise typer.Exit(0 if view.is_sound else 3)


@checkpoint.command()
def repair(
    app: AppFile = DEFAULT_FILE,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Allow tables to be moved away and computed again.")
    ] = False,
    json: Json = False,
) -> None:
    """Go back to the last complete batch. Removed files are kept in the home."""
    from millstream.repair import repair as work

    loaded = load(app, profile)
    place = loaded.home(home)
    place.verify_in_use(loaded.name)
    remedies = work.prescribe(loaded.graph, place)
    do = partial(work.repair, loaded.graph, place, agreed=yes)
    _repaired(place, remedies, do, yes=yes, json=json)


@checkpoint.command()
def rebuild(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A table, an alert or a serve.")],
    app: AppFile = DEFAULT_FILE,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Allow tables to be moved away and computed again.")
    ] = False,
    json: Json = False,
) -> None:
    """Have an answer, and all made from it, computed again. The old ones are kept in the home."""
    from millstream.repair import repair as work

    loaded = load(app, profile)
    place = loaded.home(home)
    place.verify_in_use(loaded.name)
    remedies = work.prescribe_rebuild(loaded.graph, place, name)
    do = partial(work.rebuild, loaded.graph, place, name, agreed=yes)
    _repaired(place, remedies, do, yes=yes, json=json)


def _repaired(
    home: Home, remedies: tuple[Remedy, ...], do: Callable[[], Repair], *, yes: bool, json: bool
) -> None:
    """Do what is agreed to, and show what was done, or would be."""
    from millstream.repair.repair import check_agreement

    view = RepairView.of(home, remedies)
    agreed = yes or not any(remedy.tables for remedy in remedies)
    if agreed:
        done = do()
        aside = str(done.aside) if done.aside else None
        view = replace(RepairView.of(home, done.remedies), is_done=True, aside=aside)
    if json:
        print(to_json(view))
    else:
        show_repair(view)
    check_agreement(remedies, agreed=agreed)


def show(view: CheckpointsView) -> None:
    """Print what was found."""
    found = [(c, finding) for c in view.checkpoints for finding in c.findings]
    if found:
        rows = [[c.query, f.file, _judged(f), f.what] for c, f in found]
        print_table(("query", "file", "", "what"), rows)
        print()
    if view.is_sound:
        print(f"  ✓ {counted(len(view.checkpoints), 'checkpoint')} sound: {view.home}")
    else:
        damaged = sum(not checkpoint.is_sound for checkpoint in view.checkpoints)
        print(f"  ✗ {counted(damaged, 'checkpoint')} damaged: {view.home}")
        print("  fix: `millstream checkpoint repair APP`, with the same --home")


def show_repair(view: RepairView) -> None:
    """Print what was done, or would be."""
    for remedy in view.remedies:
        print(f"  {remedy.query}: {remedy.what}")
    if not view.remedies:
        print(f"  ✓ nothing to repair: {view.home}")
    elif view.is_done:
        print(f"\n  ✓ repaired: {view.home}")
        if view.aside:
            print(f"  what was removed or rewritten is in {view.aside}")
    else:
        print("\n  nothing of this is done yet")


def _judged(finding: Finding) -> str:
    return "harmless" if finding.is_harmless else "✗ damaged"
