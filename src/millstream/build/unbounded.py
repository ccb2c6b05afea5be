"""Which state of a query grows for as long as it runs, and which line of the app made it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import MillstreamError, fault
from millstream.spark.nodes import listed, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from millstream.errors import Location
    from millstream.model.dataset import Serve, Table

_HELPER = "org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper"
_OPTION = "scala.Option"
_SOME_TIME = 2**40
_UNDER_A_WATERMARK = re.compile(r"[^(]*#\d+L?-T\d+ms")
"""How Spark writes a column that it knows to be event time, or a window of one."""


@dataclass(frozen=True, slots=True)
class Growth:
    """An operator whose state nothing bounds."""

    operator: str
    why: str
    fix: str


_WATERMARK = 'give the source event_time="at", watermark="10 minutes"'
_AGGREGATION = Growth(
    "an aggregation",
    "no column that it groups by is under a watermark, so every group is kept for ever",
    f'{_WATERMARK}, and group by F.window("at", …) too; or let it be, if groups are few',
)
_DEDUP = Growth(
    "dropDuplicates",
    "none of its columns is under a watermark, so every key is kept for ever",
    f"{_WATERMARK}, and use ms.dedup: it forgets a key when the watermark has passed it",
)
_JOIN = Growth(
    "a join of two streams",
    "no time bound says when a row can find no partner any more, so every row is kept for ever",
    f"{_WATERMARK} on both sides, and bound the time between two rows by ms.join_within; "
    "or let it be, if rows are few",
)


def unbounded_state(
    dataset: Table | Serve, frame: DataFrame, made: Sequence[tuple[Location, DataFrame]]
) -> tuple[MillstreamError, ...]:
    """Find every operator of an answer whose state grows, and the line that made it.

    Args:
        dataset: What the answer is of.
        frame: The answer.
        made: All that was made on the way to it.
    """
    found = dict.fromkeys(_growing(frame))
    if not found:
        return ()
    places = [(place, set(_growing(earlier))) for place, earlier in made if earlier.isStreaming]
    faults = []
    for growth in found:
        at = next((place for place, growths in places if growth in growths), dataset.at)
        faults.append(
            fault(
                "UNBOUNDED_STATE",
                at=at,
                operator=growth.operator,
                dataset=dataset.name,
                why=growth.why,
                fix=growth.fix,
            )
        )
    return tuple(faults)


def _growing(frame: DataFrame) -> Iterator[Growth]:
    jvm: Any = frame.sparkSession.sparkContext._jvm
    for node in filter(_is_streaming, nodes_of(frame)):
        match node.nodeName():
            case "Aggregate" if _is_open(node.groupingExpressions()):
                yield _AGGREGATION
            case "Distinct" if _is_open(node.output()):
                yield _AGGREGATION
            case "Deduplicate" if _is_open(node.keys()):
                yield _DEDUP
            case "Join" if _is_open_join(node, jvm):
                yield _JOIN


def _is_streaming(node: Any) -> bool:
    return bool(node.isStreaming())


def _is_open(columns: Any) -> bool:
    """Return whether there are columns and none of them is under a watermark."""
    texts = [str(column.toString()) for column in listed(columns)]
    return bool(texts) and not any(map(_UNDER_A_WATERMARK.fullmatch, texts))


def _is_open_join(join: Any, jvm: Any) -> bool:
    left, right = join.left(), join.right()
    if not (left.isStreaming() and right.isStreaming()):
        return False
    helper = getattr(jvm, _HELPER)
    if helper.isWatermarkInJoinKeys(join):
        return False
    some_time = getattr(jvm, _OPTION).apply(_SOME_TIME)
    return not all(
        helper.getStateValueWatermark(
            kept.outputSet(), other.outputSet(), join.condition(), some_time
        ).isDefined()
        for kept, other in ((left, right), (right, left))
    )
