"""Which columns of what it reads a column of an answer is made from, if that is written in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import lineage

from millstream.check.tables import stored_inputs
from millstream.declare.sql_function import SqlFunction
from millstream.model.dataset import Source, View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.graph import Graph

_DIALECT = "spark"


def column_inputs(
    graph: Graph, name: str, schemas: Mapping[str, Mapping[str, str]]
) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Trace the columns of an answer to those of the datasets that it reads, through views in SQL.

    Args:
        graph: What is declared.
        name: The dataset.
        schemas: Types by column, of the answer and of each dataset that it reads.

    Returns:
        Dataset and column, for each column of which they are known.
    """
    dataset = graph.datasets[name]
    if isinstance(dataset, Source) or not isinstance(dataset.build, SqlFunction):
        return {}
    reads = set(stored_inputs(graph, name))
    views = {
        view.name: view.build.query
        for view in graph.views
        if isinstance(view, View) and isinstance(view.build, SqlFunction)
    }
    known = {read: dict(schemas[read]) for read in reads if read in schemas}
    found: dict[str, Sequence[tuple[str, str]]] = {}
    for column in schemas.get(name, ()):
        try:
            root = lineage(
                column, dataset.build.query, schema=known, sources=views, dialect=_DIALECT
            )
        except (SqlglotError, ValueError, KeyError):
            # What the parser cannot trace is left out, and Spark runs it all the same.
            continue
        leaves = [
            (node.source.name, node.name.rpartition(".")[2])
            for node in root.walk()
            if isinstance(node.source, exp.Table) and node.source.name in reads
        ]
        if leaves:
            found[column] = sorted(set(leaves))
    return found
