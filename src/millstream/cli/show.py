"""`millstream show`: one dataset in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli import text
from millstream.cli.option import (
    DEFAULT_FILE,
    AppIfAny,
    HomeDir,
    Json,
    ProfileName,
    names_beginning,
)
from millstream.cli.settings import settings as print_settings
from millstream.errors import fault
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.views.dataset_detail import DeclaredView, ShownView
    from millstream.views.status import StandingView


def show(  # noqa: PLR0913 - a command has the options it has
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The dataset.", autocompletion=names_beginning),
    ] = None,
    app: AppIfAny = None,
    *,
    settings: Annotated[
        bool, typer.Option("--settings", help="Show the settings of APP, without NAME.")
    ] = False,
    rows: Annotated[int, typer.Option(min=0, metavar="N", help="How many rows to show.")] = 5,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Show one dataset: declaration, schema, versions and some rows."""
    from millstream.loading import find_deployed
    from millstream.views.dataset_detail import ShownView

    if settings:
        if app is not None:
            raise fault(
                "USAGE", command="millstream show", cause="--settings takes APP alone, no NAME"
            )
        print_settings(name or DEFAULT_FILE, profile=profile, home=home, json=json)
        return
    if name is None:
        raise fault("USAGE", command="millstream show", cause="it takes NAME, or --settings")
    view = ShownView.of(*find_deployed(app, home, profile), name, rows=rows)
    print(to_json(view)) if json else print_dataset(view)


def print_dataset(view: ShownView) -> None:
    """Print one dataset."""
    facts = list(_facts(view))
    width = max((len(what) for what, _ in facts), default=0)
    print("\n".join([_title(view), *(f"  {what.ljust(width)}  {fact}" for what, fact in facts)]))
    if view.schema:
        print()
        columns = [[c.name, c.type, "" if c.nullable else "NOT NULL"] for c in view.schema]
        text.print_table(("column", "type", ""), columns)
    if view.versions:
        print()
        text.print_table(
            ("version", "committed", "batch", "rows", "operation"),
            [
                [str(v.version), text.moment(v.at), _number(v.batch), _number(v.rows), v.operation]
                for v in view.versions
            ],
        )
    if view.sample:
        print()
        text.print_table(
            view.sample.columns, [[text.cell(v) for v in row] for row in view.sample.rows]
        )


def _title(view: ShownView) -> str:
    if view.node:
        return f"{view.name}: {view.node}"
    kind = view.standing.kind if view.standing else ""
    return f"{view.name}: {kind}, declared by no app that was named"


def _facts(view: ShownView) -> Iterator[tuple[str, str]]:
    if view.node:
        yield "declared", f"{view.node.file}:{view.node.line}"
        yield "reads", ", ".join(view.node.reads) or text.NOTHING
        yield "read by", ", ".join(view.node.read_by) or text.NOTHING
    if view.declared:
        yield from _options(view.declared)
    if view.standing:
        yield "state", _state(view.standing)


def _options(declared: DeclaredView) -> Iterator[tuple[str, str]]:
    yield "trigger", declared.trigger or "default"
    if declared.event_time:
        idle = f", idle after {declared.idle}" if declared.idle else ""
        watermark = declared.watermark or text.NOTHING
        computed = f" = {declared.event_time_from}" if declared.event_time_from else ""
        yield "event time", f"{declared.event_time}{computed}, watermark {watermark}{idle}"
    if declared.partition_by:
        yield "partitions", ", ".join(declared.partition_by)
    for name, rule in declared.rules.items():
        yield "rule", f"{name}: {rule} (else {declared.on_violation or 'rejected'})"
    if declared.evolve:
        yield "evolve", "columns may be added"


def _state(standing: StandingView) -> str:
    if standing.state != "ran":
        return standing.state
    parts = [
        f"batch {standing.batch}",
        f"{text.counted(standing.total, 'row')} in all",
        f"committed {text.moment(standing.committed_at)}",
    ]
    if standing.complete_to:
        parts.append(f"complete to {text.moment(standing.complete_to)}")
    return " · ".join([*parts, text.verdicts(standing.verdicts)])


def _number(number: int | None) -> str:
    return text.NOTHING if number is None else str(number)
