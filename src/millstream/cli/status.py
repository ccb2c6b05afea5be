"""`millstream status`: how the datasets of a home stand, and who runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli import text
from millstream.cli.option import (  # noqa: TC001 - typer reads annotations
    AppIfAny,
    Exclude,
    HomeDir,
    Json,
    ProfileName,
    Select,
)
from millstream.errors import fault
from millstream.views.shape import to_json

if TYPE_CHECKING:
    from millstream.lake.lease import Holder
    from millstream.views.status import StandingView, StatusView

_COLUMNS = ("dataset", "kind", "batch", "rows", "in all", "version")
_TIMES = ("committed", "complete to", "verdicts")


def status(
    app: AppIfAny = None,
    *,
    home: HomeDir = None,
    select: Select = None,
    exclude: Exclude = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Show how far each dataset is, and whether a driver runs; needs none."""
    from millstream.loading import find_deployed
    from millstream.views.status import StatusView

    place, graph = find_deployed(app, home, profile)
    chosen = None
    if select or exclude:
        if graph is None:
            raise fault("SELECTION_WITHOUT_APP", home=str(place.path))
        chosen = graph.select(select, exclude)
    view = StatusView.of(place, graph, chosen)
    print(to_json(view)) if json else show(view)


def show(view: StatusView) -> None:
    """Print how a home stands."""
    print(f"{view.app}: {view.home}\n")
    text.print_table((*_COLUMNS, *_TIMES), [_row(dataset) for dataset in view.datasets])
    for dataset in view.datasets:
        if dataset.fault:
            print(f"\n{text.told(dataset.fault)}")
    print(f"\n  {driver(view.driver)}")


def driver(holder: Holder | None) -> str:
    """Say who runs a home."""
    if holder is None:
        return "no driver runs"
    return f"✓ a driver runs: pid {holder.pid} on {holder.host} since {holder.since}"


def _row(dataset: StandingView) -> list[str]:
    trouble = f"{dataset.trouble.upper()} · " if dataset.trouble else ""
    if dataset.state != "ran":
        return [dataset.name, dataset.kind, *([text.NOTHING] * 6), trouble + dataset.state]
    aside = trouble + text.verdicts(dataset.verdicts)
    return [
        dataset.name,
        dataset.kind,
        *(str(number) for number in (dataset.batch, dataset.rows, dataset.total, dataset.version)),
        text.moment(dataset.committed_at),
        f"{text.moment(dataset.complete_to)}{' by the clock' if dataset.quiet_since else ''}",
        aside,
    ]
