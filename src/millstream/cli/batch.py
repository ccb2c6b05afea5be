"""`millstream batch`: the same tables as one batch over all that is landed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.option import DEFAULT_FILE, AppFile, HomeDir, Json, Master, ProfileName
from millstream.cli.text import print_table
from millstream.errors import fault, listed
from millstream.lake.home import Home
from millstream.loading import load
from millstream.views.json_text import to_json
from millstream.views.report import BatchView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.app import App


def batch(  # noqa: PLR0913 - a command has the options it has
    app: AppFile = DEFAULT_FILE,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A fresh home to keep the answers in."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare the answers with the stream's tables.")
    ] = False,
    master: Master = None,
    json: Json = False,
) -> None:
    """Compute every table as one batch over all landed rows."""
    loaded = load(app, profile)
    loaded.raise_faults()
    landed = loaded.home(home)
    landed.verify_in_use(loaded.name)
    with _place(landed, into, keep=not compare) as place:
        view = _computed(loaded, landed, place, loaded.master(master), compare=compare)
    view = view if place.exists() else replace(view, into=None)
    if json:
        print(to_json(view))
    else:
        show(view)
    differing = [table.name for table in view.compared if not table.is_equal]
    if differing:
        raise fault("NOT_EQUAL", tables=listed(differing))


def show(view: BatchView) -> None:
    """Print what was computed, and how the stream's tables compare with it."""
    if view.compared:
        columns = ("table", "verdict", "equal", "missing", "extra", "waiting")
        rows = [
            [c.name, "✓ equal" if c.is_equal else "✗ differs"]
            + [str(n) for n in (c.equal, c.missing, c.extra, c.waiting)]
            for c in view.compared
        ]
        print_table(columns, rows)
    else:
        rows = [[t.name, str(t.rows), str(t.quarantined)] for t in view.tables]
        print_table(("table", "rows", "quarantined"), rows)
    if view.into:
        print(f"\n  the batch answers are in {view.into}")


@contextmanager
def _place(home: Home, into: Path | None, *, keep: bool) -> Iterator[Path]:
    """Choose where the answers go: where the user says, beside the home, or a temporary folder."""
    from tempfile import TemporaryDirectory

    if into is not None:
        if Home.at(into).tables:
            expected = "a folder that holds no tables"
            raise fault("ARGUMENT_REFUSED", option="--into", value=str(into), expected=expected)
        yield into
    elif keep:
        yield home.path.with_name(f"{home.path.name}-batch-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    else:
        with TemporaryDirectory(prefix="millstream-batch-") as place:
            yield Path(place)


def _computed(app: App, home: Home, into: Path, master: str, *, compare: bool) -> BatchView:
    from millstream.cli.quiet import open_quiet_session
    from millstream.cli.spark_progress import showing_progress
    from millstream.trial import batch

    spark = open_quiet_session(app.name, master, conf=app.bound.spark, log_dir=home.logs)
    computed = Home.at(into)
    with showing_progress(spark, "batch"):
        tables = batch.run_batch(app.graph, spark, home, computed)
        compared = batch.compare(app.graph, spark, home, computed) if compare else ()
    return BatchView(str(computed.path), tables, compared)
