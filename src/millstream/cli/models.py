"""`millstream models`: which versions models have, and what was measured of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli import text
from millstream.cli.option import AppIfAny, HomeDir, Json, ProfileName  # noqa: TC001 - typer reads annotations
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.learn.versions import ModelVersion
    from millstream.views.models import ModelsView

_DIGITS = 12
"""How much of a digest is printed."""


def models(
    app: AppIfAny = None,
    *,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Only this model [all].")
    ] = None,
    versions: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many versions of each to show.")
    ] = 5,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """List the versions of models: when each was made, what it has learnt, how good it was."""
    from millstream.loading import find_deployed
    from millstream.views.models import ModelsView

    place, graph = find_deployed(app, home, profile)
    shown = ModelsView.of(place, graph, model)
    print(to_json(shown)) if json else _print(shown, versions)


def _print(shown: ModelsView, most: int) -> None:
    head = ("model", "version", "of", "learnt", "", "of the last", "made with", "size", "digest")
    rows = [
        [model.name, *_cells(version)]
        for model in shown.models
        for version in model.versions[:most]
    ]
    if rows:
        text.print_table(head, rows)
        print()
    count = sum(len(model.versions) for model in shown.models)
    summary = f"{text.counted(count, 'version')} of {text.counted(len(shown.models), 'model')}"
    print(f"  {summary}: {shown.home}")


def _cells(version: ModelVersion) -> list[str]:
    return [
        version.version,
        version.key or "",
        text.grouped(version.learnt),
        _measured(version.metrics),
        _measured(version.recent),
        version.made_with,
        text.size(version.size),
        version.digest[:_DIGITS],
    ]


def _measured(metrics: Mapping[str, float | None]) -> str:
    shown = (
        f"{name} {'-' if value is None else format(value, '.4f')}"
        for name, value in metrics.items()
    )
    return " · ".join(shown)
