"""`millstream checkpoint`: what is wrong with Spark's checkpoints, and their repair."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.option import DEFAULT_FILE, AppFile, AppIfAny, HomeDir, Json, ProfileName
from millstream.cli.text import counted, print_table
from millstream.cli.usage import Commands
from millstream.loading import find_home, load
from millstream.views.report import CheckpointsView, RepairView
from millstream.views.shape import to_json

if TYPE_CHECKING:
    from millstream.checkpoint import Finding

checkpoint = typer.Typer(
    name="checkpoint",
    cls=Commands,
    help="Look for damage in Spark's checkpoints, and repair it.",
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
    """Look for damage; exit 3 if there is any that a run would stumble over."""
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
        bool, typer.Option("--yes", help="Let tables be moved aside and computed again.")
    ] = False,
    json: Json = False,
) -> None:
    """Go back to the last batch that is whole; what is removed is kept in the home."""
    from millstream.repair import repair as work

    loaded = load(app, profile)
    place = loaded.home(home)
    place.verify_in_use(loaded.name)
    remedies = work.prescribe(loaded.graph, place)
    view = RepairView.of(place, remedies)
    agreed = yes or not any(remedy.tables for remedy in remedies)
    if agreed:
        done = work.repair(loaded.graph, place, agreed=yes)
        aside = str(done.aside) if done.aside else None
        view = replace(RepairView.of(place, done.remedies), is_done=True, aside=aside)
    if json:
        print(to_json(view))
    else:
        show_repair(view)
    work.hold_to_agreement(remedies, agreed=agreed)


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
