"""Which operators of a query cannot run without batches, and which line of the app made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import Location, MillstreamError, fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from millstream.model.dataset import Serve
    from millstream.model.trigger import Trigger

    Made = Sequence[tuple[Location, DataFrame]]

_ALLOWED = "org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist$"
_MAPS = (
    *("Project", "Filter", "MapElements", "MapPartitions", "DeserializeToObject"),
    *("SerializeFromObject", "SubqueryAlias", "TypedFilter", "View"),
    *("StreamingRelationV2", "StreamingRelation"),
)
"""What continuous mode runs, as Spark's UnsupportedOperationChecker has it."""
_WHOLE = (True, False)
"""Arguments of classForName: initialize the class, and do not use Spark's own loader."""
_NOW = frozenset(("CurrentTimestamp", "CurrentDate", "Now", "LocalTimestamp", "CurrentTime"))
_BUILT_IN = "use built-in functions (pyspark.sql.functions)"
_STATELESS = "leave it to the reader of the topic"


@dataclass(frozen=True, slots=True)
class Operator:
    """What a user would call an operator, and what can take its place without batches."""

    name: str
    instead: str


_AGGREGATION = Operator("an aggregation", _STATELESS)
_DEDUP = Operator("dropDuplicates", _STATELESS)
_STATE = Operator("keyed state", _STATELESS)
_PYTHON = Operator("a function in Python", _BUILT_IN)
_SHUFFLED_JOIN = Operator(
    "a join without broadcast", "join on equal columns with F.broadcast(…) of the reference data"
)
_JOIN = Operator("a join", "use trigger='realtime', which has broadcast joins")
_REPARTITION = Operator("a repartitioning", "leave it out")
_OPERATORS = {
    name: operator
    for names, operator in (
        ("HashAggregate ObjectHashAggregate SortAggregate Aggregate", _AGGREGATION),
        ("StateStoreSave StateStoreRestore Window SessionWindowStateStoreSave", _AGGREGATION),
        ("SessionWindowStateStoreRestore MergingSessions UpdatingSessions", _AGGREGATION),
        ("StreamingDeduplicate StreamingDeduplicateWithinWatermark", _DEDUP),
        ("Deduplicate DeduplicateWithinWatermark Distinct", _DEDUP),
        ("FlatMapGroupsWithState TransformWithState TransformWithStateInPySpark", _STATE),
        ("FlatMapGroupsInPandasWithState TransformWithStateInPandas", _STATE),
        ("ArrowEvalPython BatchEvalPython MapInPandas MapInArrow PythonMapInArrow", _PYTHON),
        ("FlatMapGroupsInPandas FlatMapGroupsInArrow AggregateInPandas", _PYTHON),
        ("SortMergeJoin ShuffledHashJoin BroadcastNestedLoopJoin CartesianProduct", _SHUFFLED_JOIN),
        ("Join", _JOIN),
        ("StreamingSymmetricHashJoin", Operator("a join of two streams", _STATELESS)),
        ("Union", Operator("a union", "use trigger='realtime', or a serve for each part")),
        ("Generate", Operator("explode", "use trigger='realtime'")),
        ("EventTimeWatermark", Operator("a watermark", "leave it out")),
        ("CollectMetrics", Operator("observe", "use trigger='realtime'")),
        ("Sort", Operator("a sort", "leave it out")),
        ("GlobalLimit LocalLimit StreamingGlobalLimit StreamingLocalLimit", _STATE),
        ("ShuffleExchange Repartition RepartitionByExpression Coalesce", _REPARTITION),
    )
    for name in names.split()
}


def unfit_operators(
    serve: Serve, trigger: Trigger, trigger_text: str, frame: DataFrame, made: Made
) -> tuple[MillstreamError, ...]:
    """Find every operator of an answer that cannot run in a trigger, and the line that made it.

    Args:
        serve: What the answer is of.
        trigger: When it runs.
        trigger_text: The same, as the user wrote it.
        frame: The answer.
        made: All that was made on the way to it.
    """
    if not trigger.is_row_wise:
        return ()
    unfit = _in_real_time if trigger.kind == "realtime" else _continuously
    places = [(place, unfit(earlier)) for place, earlier in made if earlier.isStreaming]
    found = []
    for operator in unfit(frame):
        at = next((place for place, operators in places if operator in operators), serve.at)
        found.append(
            fault(
                "TRIGGER_OPERATOR",
                at=at,
                serve=serve.name,
                trigger=trigger_text,
                operator=operator.name,
                instead=operator.instead,
            )
        )
    return tuple(found)


def _in_real_time(frame: DataFrame) -> dict[Operator, None]:
    """Check the physical plan above its streams against Spark's list of operators."""
    jvm: Any = frame.sparkSession.sparkContext._jvm
    allowed = _operators_in_real_time(jvm)
    refused: dict[Operator, None] = {}

    def walk(node: Any) -> bool:
        children = node.children()
        parts = [walk(children.apply(n)) for n in range(children.size())]
        name = str(node.getClass().getName())
        if not parts:
            return name.endswith(".StreamingRelationExec")
        if any(parts) and not allowed.contains(name):
            refused.setdefault(_operator(name.rpartition(".")[2].removesuffix("Exec")))
        return any(parts)

    # What SQL gives is planned as a stream only if something is built on it.
    execution = frame.select("*")._jdf.queryExecution()
    walk(execution.queryExecutionForExplain().sparkPlan())
    return refused


def _continuously(frame: DataFrame) -> dict[Operator, None]:
    """Check the plan against the operators that continuous mode has."""
    refused: dict[Operator, None] = {}

    def walk(node: Any) -> None:
        children = node.children()
        for n in range(children.size()):
            walk(children.apply(n))
        if node.isStreaming() and (name := str(node.nodeName())) not in _MAPS:
            refused.setdefault(_operator(name))
        for expression in _expressions(node):
            if expression in _NOW:
                refused.setdefault(Operator("the current time", "take the time of the record"))
            if expression in ("PythonUDF", "PythonUDAF"):
                refused.setdefault(_PYTHON)

    walk(frame._jdf.queryExecution().analyzed())
    return refused


def _expressions(node: Any) -> Iterator[str]:
    todo = [node.expressions()]
    while todo:
        found = todo.pop()
        for n in range(found.size()):
            expression = found.apply(n)
            yield str(expression.getClass().getSimpleName())
            todo.append(expression.children())


def _operators_in_real_time(jvm: Any) -> Any:
    """Read Spark's list, which is private."""
    kind = jvm.org.apache.spark.util.Utils.classForName(_ALLOWED, *_WHOLE)
    [field] = (f for f in kind.getDeclaredFields() if f.getName().endswith("allowedOperators"))
    field.setAccessible(_WHOLE[0])
    return field.get(None)


def _operator(name: str) -> Operator:
    return _OPERATORS.get(name, Operator(f"Spark's {name}", "leave it out"))
