"""Small builders of graphs for tests that need no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import Location
from millstream.model.dataset import Serve, Source, Table, View
from millstream.model.graph import Graph
from millstream.model.query_options import NAMES, QueryOptions
from millstream.systems.console.settings import Console
from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from millstream.model.dataset import Dataset

AT = Location("app.py", 7)


def source(name: str, **options: Any) -> Source:
    connector = options.pop("connector", Memory("id BIGINT, at TIMESTAMP"))
    return Source(name=name, connector=connector, at=AT, **_grouped(options))


def view(name: str, *reads: str) -> View:
    return View(name, reads, lambda *frames: frames[0], AT)


def table(name: str, *reads: str, **options: Any) -> Table:
    return Table(name, reads, lambda *frames: frames[0], AT, **_grouped(options))


def serve(name: str, *reads: str, **options: Any) -> Serve:
    to = options.pop("to", (Console(),))
    return Serve(name, reads, lambda *frames: frames[0], AT, to, **_grouped(options))


def graph(*datasets: Dataset, trigger: str | None = None) -> Graph:
    return Graph("shop", datasets, QueryOptions(trigger=trigger))


def _grouped(options: dict[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in options.items() if name not in NAMES}
    return {**own, "options": QueryOptions.among(options)}
