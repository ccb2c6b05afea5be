"""`millstream status`: the state of the datasets of a home, and its driver."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli import text
from millstream.cli.display import event_lines
from millstream.cli.option import AppIfAny, Exclude, HomeDir, Json, ProfileName, Select  # noqa: TC001 - typer reads annotations
from millstream.errors import fault
from millstream.views.json_text import to_json
from millstream.views.progress import EventView

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from millstream.lake.home import Home
    from millstream.lake.lease import Holder
    from millstream.model.graph import Graph
    from millstream.observe import Event
    from millstream.views.models import ModelStandingView
    from millstream.views.sizes import TableSizeView
    from millstream.views.status import StandingView, StatusView

_COLUMNS = ("dataset", "kind", "batch", "rows", "in all", "version")
_SIZES = ("table", "files", "size", "on disk", "", "versions", "a day", "keeps", "maintained")
_TIMES = ("committed", "complete to", "verdicts")


def status(  # noqa: PLR0913 - a command has the options it has
    app: AppIfAny = None,
    *,
    home: HomeDir = None,
    select: Select = None,
    exclude: Exclude = None,
    profile: ProfileName = None,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="Exit with 1 unless all is well. Without a driver, report objectives not met.",
        ),
    ] = False,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Show files, bytes, versions and maintenance instead.")
    ] = False,
    json: Json = False,
) -> None:
    """Show how far each dataset is, whether all is well, and whether a driver runs."""
    from millstream.loading import find_deployed
    from millstream.views.status import StatusView

    place, graph = find_deployed(app, home, profile)
    chosen = None
    if select or exclude:
        if graph is None:
            raise fault("SELECTION_WITHOUT_APP", home=str(place.path))
        chosen = graph.select(select, exclude)
    if sizes:
        show_sizes(place, graph, chosen, json=json)
        return
    view = StatusView.of(place, graph, chosen).with_models(place, graph)
    print(to_json(view)) if json else show(view)
    if exit_code:
        from millstream.alert.without_driver import judge_without_driver

        if graph is not None:
            judge_without_driver(graph, place, report=_print_event)
        raise typer.Exit(int(view.state != "ok"))


def _print_event(event: Event) -> None:
    print(event_lines(EventView.of(event)), file=sys.stderr)


def show(view: StatusView) -> None:
    """Print the state of a home."""
    print(f"{view.app}: {view.home}\n")
    text.print_table((*_COLUMNS, *_TIMES), [_row(dataset) for dataset in view.datasets])
    for dataset in view.datasets:
        if dataset.fault:
            print(f"\n{text.format_fault(dataset.fault)}")
    if view.models:
        print()
        rows = [[*_model_row(model)] for model in view.models]
        text.print_table(("model", "version", "models", "learnt", "", "of the last", "drift"), rows)
    print(f"\n  {'✓' if view.state == 'ok' else '✗'} {view.sentence}")
    print(f"  {driver(view.driver)}")


def show_sizes(
    home: Home, graph: Graph | None, chosen: Collection[str] | None, *, json: bool
) -> None:
    """Print how large the tables of a home are."""
    from millstream.views.sizes import SizesView

    view = SizesView.of(home, graph, chosen)
    if json:
        print(to_json(view))
        return
    print(f"{view.app}: {view.home}\n")
    text.print_table(_SIZES, [_size_row(table) for table in view.tables])
    for table in view.tables:
        if table.waits_for:
            print(f"\n  {table.name}: old versions wait for {table.waits_for}")
        if table.trouble:
            print(f"\n  ✗ {table.name}: {table.trouble}")
    whole = f"{text.size(view.size_on_disk)} in {text.counted(view.files_on_disk, 'file')}"
    print(f"\n  tables {whole}, checkpoints {text.size(view.checkpoints)}")


def _size_row(table: TableSizeView) -> list[str]:
    growth = text.NOTHING if table.growth_per_day is None else text.size(table.growth_per_day)
    return [
        table.name,
        str(table.files),
        text.size(table.size),
        str(table.files_on_disk),
        text.size(table.size_on_disk),
        f"{table.first_version} to {table.version}",
        growth,
        table.kept,
        f"{text.moment(table.maintained_at)} {table.done}".strip(),
    ]


def _model_row(model: ModelStandingView) -> Iterator[str]:
    yield from (model.name, model.version or text.NOTHING, str(model.models))
    yield from (text.grouped(model.learnt), text.measured(model.metrics))
    yield text.measured(model.recent)
    yield f"{model.drifts}, last {text.moment(model.drifted_at)}" if model.drifts else text.NOTHING


def driver(holder: Holder | None) -> str:
    """Return a line on the driver of a home."""
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
