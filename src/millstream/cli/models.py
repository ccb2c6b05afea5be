"""`millstream models`: which versions models have, and what was measured of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.check.names import is_name
from millstream.cli import text
from millstream.cli.option import (
    AppIfAny,
    HomeDir,
    Json,
    ProfileName,
    app_and_name,
)
from millstream.errors import fault, listed
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from millstream.learn.stored import ModelVersion
    from millstream.views.model_comparison import ComparisonView
    from millstream.views.models import ModelsView, RollbackView

_FACTS = ("learnt", "", "of the last", "made with", "size", "digest")
_DIGITS = 12
"""How much of a digest is printed."""


def models(  # noqa: PLR0913 - a command has the options it has
    app: AppIfAny = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only this model [all].")
    ] = None,
    *,
    versions: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many versions of each to show.")
    ] = 5,
    roll_back: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Have the model go on from an earlier version."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Forget what the model has learnt since that version.")
    ] = False,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Compare two models on the rows that both have scored."),
    ] = None,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """List the versions of models, roll a model back, or compare two of them."""
    from millstream.loading import find_deployed
    from millstream.views import models as view
    from millstream.views.model_comparison import ComparisonView

    if name is not None and app is not None:
        app, name = app_and_name(app, name)
    elif app is not None and is_name(app) and not Path(app).is_dir():
        app, name = None, app
    place, graph = find_deployed(app, home, profile)
    if compare is not None:
        compared = ComparisonView.of(place, graph, *compare)
        print(to_json(compared)) if json else _print_comparison(compared)
    elif roll_back is not None:
        known = view.check_model(place, graph, name)
        if name is None and len(known) != 1:
            expected = f"the name of a model: {listed(tuple(known))}"
            raise fault("ARGUMENT_REFUSED", option="NAME", value="", expected=expected)
        done = view.roll_back(place, graph, name or known[0], roll_back, agreed=yes)
        print(to_json(done)) if json else _print_rollback(done)
    else:
        shown = view.ModelsView.of(place, graph, name)
        print(to_json(shown)) if json else _print(shown, versions)


def _print_rollback(done: RollbackView) -> None:
    print(f"  ✓ {done.model} goes on from {done.to}")
    print("    the driver that runs does it before its next batch, or the next one at its start")


def _print_comparison(compared: ComparisonView) -> None:
    names = list(compared.all.sides[0].metrics)
    head = ("rows", "labelled", "model", *names, "alone right or nearer")
    rows = []
    for which, span in (("all", compared.all), ("the last", compared.last)):
        for side in span.sides:
            measured = [format(side.metrics[name], ".4f") for name in names if name in side.metrics]
            measured += [text.NOTHING] * (len(names) - len(measured))
            rows.append([which, str(span.labelled), side.model, *measured, str(side.better)])
    text.print_table(head, rows)
    print()
    for which, span in (("all", compared.all), ("the last", compared.last)):
        share = f"{span.differ / span.rows:.1%}" if span.rows else text.NOTHING
        print(f"  they differ on {span.differ:,} of {which} {span.rows:,} rows: {share}")


def _print(shown: ModelsView, most: int) -> None:
    head = ("model", "version", "of", "", *_FACTS)
    rows = [
        [model.name, *_cells(version)]
        for model in shown.models
        for version in model.versions[:most]
    ]
    if rows:
        text.print_table(head, rows)
        print()
    count = sum(len(model.versions) for model in shown.models)
    for model in shown.models:
        for scorer in model.scorers:
            always = ", always" if scorer.is_pinned else ""
            print(f"  {scorer.query} scores with {model.name} {scorer.version or '-'}{always}")
        if model.drifts:
            last = text.moment(model.drifts[0].at)
            print(f"  {model.name} drifted {text.counted(len(model.drifts), 'time')}, last {last}")
        for back in model.rollbacks:
            after = f"after {text.moment(back.after)}" if back.after else "when a driver runs"
            print(f"  {model.name} rolled back to {back.to} {after}")
    summary = f"{text.counted(count, 'version')} of {text.counted(len(shown.models), 'model')}"
    print(f"  {summary}: {shown.home}")


def _cells(version: ModelVersion) -> list[str]:
    return [
        version.version,
        version.key or "",
        version.state,
        text.grouped(version.learnt),
        text.measured(version.metrics),
        text.measured(version.recent),
        version.made_with,
        text.size(version.size),
        version.digest[:_DIGITS],
    ]
