"""What a checkpoint has read, compared with what its query reads now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from millstream.checkpoint import CheckpointLog
from millstream.errors import CheckpointDamagedError, fault
from millstream.spark.nodes import streams_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from millstream.errors import MillstreamError
    from millstream.lake.home import Home
    from millstream.model.dataset import Serve, Table
    from millstream.model.graph import Graph

_LIVE = "a live source"
_NO_TABLE = ""
"""What a checkpoint has instead of the id of a table, of a source that is none."""


def changed_inputs(
    graph: Graph, dataset: Table | Serve, frame: DataFrame, home: Home, tables: Path
) -> Iterator[MillstreamError]:
    """Find a query whose checkpoint holds positions in other tables than it reads now.

    Spark matches positions with inputs by their order alone, so the order counts as well.

    Args:
        graph: What is declared.
        dataset: What the query is of.
        frame: Its answer.
        home: Where the checkpoint is.
        tables: The folder whose folders the answer reads, each named after a dataset.
    """
    log = CheckpointLog(home.checkpoint(dataset.name))
    if log.planned < 0:
        return
    try:
        was = log.offsets(log.planned).tables
    except CheckpointDamagedError:
        # It is reported when the query starts, which the others do not wait for.
        return
    now = [_name(graph, path, tables) for path in streams_of(frame)]
    # Which live source it is, a checkpoint does not say.
    if len(was) == len(now) and all(
        name is None or table in (None, _id(home, name))
        for name, table in zip(now, was, strict=True)
    ):
        return
    yield fault(
        "INPUTS_CHANGED",
        at=dataset.at,
        dataset=dataset.name,
        was=", ".join(_read_before(was, home)),
        now=", ".join(name or _LIVE for name in now) or "nothing",
    )


def _name(graph: Graph, path: str | None, tables: Path) -> str | None:
    """Name the dataset that a stream reads; None if it is live."""
    if path is None or Path(path).parent != tables:
        return None
    # A check reads live sources from folders as well.
    dataset = graph.datasets[Path(path).name]
    return None if dataset.live else dataset.name


def _id(home: Home, name: str) -> str | None:
    is_stored = name in home.tables
    return str(DeltaTable(str(home.table(name))).metadata().id) if is_stored else None


def _read_before(ids: Sequence[str | None], home: Home) -> Iterator[str]:
    names = {_id(home, name): name for name in home.tables}
    for each in ids:
        if each is None:
            yield "an empty table"
        else:
            yield _LIVE if each == _NO_TABLE else names.get(each, "a table that is not here")
