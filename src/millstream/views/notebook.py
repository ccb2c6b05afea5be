"""An app in a notebook: its graph, how it runs, and what is wrong with it so far."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from millstream.errors import relative
from millstream.observe.history import History
from millstream.views.drawing import to_html as drawn
from millstream.views.graph import GraphView
from millstream.views.history import sparkline
from millstream.views.overview import OverviewView
from millstream.views.progress import look

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from millstream.model.graph import Graph
    from millstream.run.application import ApplicationRun
    from millstream.run.supervise import Supervised
    from millstream.views.overview import DatasetOverview
    from millstream.views.progress import DatasetView

_COLUMNS = ("dataset", "state", "batch", "in/s", "behind", "last minutes", "set aside")


def to_html(
    graph: Graph,
    running: ApplicationRun | None,
    faults: Iterable[Exception],
    for_next_start: Sequence[str] = (),
) -> str:
    """Draw an app.

    Args:
        graph: What is declared.
        running: Its run, if it runs.
        faults: What is wrong with it, or stopped it.
        for_next_start: Names that were declared after it had started.
    """
    parts = [drawn(GraphView.of(graph))]
    if running is not None:
        with History.read_only(running.home.history) as history:
            overview = OverviewView.of(running.home, graph, history)
        measured = {dataset.name: dataset for dataset in overview.datasets}
        rows = "".join(_row(v, measured.get(v.name)) for v in look(running.queries, {}))
        parts.append(f"<div>running in {escape(relative(str(running.home.path)))}</div>")
        parts.append(f"<table><tr>{_cells('th', _COLUMNS)}</tr>{rows}</table>")
        faults = (*faults, *_failures(running.queries))
        if for_next_start:
            names = ", ".join(dict.fromkeys(for_next_start))
            parts.append(f"<div>for the next start: {escape(names)}</div>")
    return "".join((*parts, *(f"<pre>{escape(str(fault))}</pre>" for fault in faults)))


def _failures(queries: Iterable[Supervised]) -> Iterator[Exception]:
    for query in queries:
        if query.error is not None and query.state in ("failed", "restarting"):
            yield query.error


def _row(view: DatasetView, measured: DatasetOverview | None) -> str:
    counts, scope = view.aside
    aside = " · ".join(f"{count} {why}" for why, count in counts.items())
    aside += f" {scope}" * bool(counts)
    batch = str(view.batch) if view.batch >= 0 else ""
    rate = behind = recent = ""
    if measured is not None:
        recent = sparkline(measured.recent_input)
        rate = "" if measured.input_rate is None else f"{measured.input_rate:,.1f}"
        behind = "" if measured.behind_rows is None else f"{measured.behind_rows:,}"
    cells = (view.name, view.state, batch, rate, behind, recent, aside)
    return f"<tr>{_cells('td', cells)}</tr>"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
