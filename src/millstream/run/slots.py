"""Task slots: a query without batches keeps its tasks busy, so other queries need more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.model.connector import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

    from millstream.model.dataset import Source
    from millstream.plan import Query
    from millstream.run.supervise import Supervised


def check_task_slots(
    queries: Sequence[Supervised],
    read_directly: Callable[[Query], Iterable[Source]],
    spark: SparkSession,
) -> None:
    """Check that queries without batches leave a task slot for the others.

    Raises:
        TASK_SLOTS: They do not.
    """
    busy = [s.query for s in queries if s.trigger.is_row_wise]
    if not busy:
        return
    connectors = (source.connector for query in busy for source in read_directly(query))
    wanted = sum(c.tasks(spark) for c in connectors if isinstance(c, Tasks))
    wanted += len(busy) < len(queries)
    context = spark.sparkContext
    if wanted > context.defaultParallelism:
        raise fault(
            "TASK_SLOTS",
            queries=", ".join(repr(query.name) for query in busy),
            wanted=wanted,
            slots=context.defaultParallelism,
            master=str(context.master),
        )
