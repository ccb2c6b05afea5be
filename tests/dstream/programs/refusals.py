"""What an engine refuses: each function raises, and the kind of error is what users know."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Any

from tests.dstream.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from tests.dstream.program import Collect, Queue

PAIRS: Queue = ([("a", 1)], [("b", 2)])


def _stream(ssc: Any) -> Any:
    return ssc.queueStream([[("a", 1)], [("b", 2)]])


def _running(ssc: Any) -> Any:
    stream = _stream(ssc)
    stream.foreachRDD(lambda rdd: None)
    ssc.start()
    return stream


def start_without_outputs(api: ModuleType, ssc: Any) -> None:
    _stream(ssc)
    ssc.start()


def start_again_after_stop(api: ModuleType, ssc: Any) -> None:
    _running(ssc)
    ssc.stop(stopSparkContext=False)
    ssc.start()


def stream_after_start(api: ModuleType, ssc: Any) -> None:
    _running(ssc)
    _stream(ssc)


def operation_after_start(api: ModuleType, ssc: Any) -> None:
    _running(ssc).window(2)


def output_after_start(api: ModuleType, ssc: Any) -> None:
    _running(ssc).foreachRDD(lambda rdd: None)


def map_after_stop(api: ModuleType, ssc: Any) -> None:
    stream = _running(ssc)
    ssc.stop(stopSparkContext=False)
    stream.map(str).pprint()


def second_context(api: ModuleType, ssc: Any) -> None:
    _running(ssc)
    other = api.StreamingContext(ssc.sparkContext, 1)
    _running(other)


def window_between_batches(api: ModuleType, ssc: Any) -> None:
    _stream(ssc).window(1.5)


def slide_between_batches(api: ModuleType, ssc: Any) -> None:
    _stream(ssc).window(2, 0.5)


def window_of_a_window(api: ModuleType, ssc: Any) -> None:
    _stream(ssc).window(2, 2).window(3)


def reduce_window_between_batches(api: ModuleType, ssc: Any) -> None:
    _stream(ssc).reduceByKeyAndWindow(add, None, 2, 1.5)


def count_window_between_batches(api: ModuleType, ssc: Any) -> None:
    _stream(ssc).countByWindow(0.5, 1)


def union_of_nothing(api: ModuleType, ssc: Any) -> None:
    ssc.union()


def union_of_other_slides(api: ModuleType, ssc: Any) -> None:
    stream = _stream(ssc)
    stream.union(stream.window(2, 2))


def union_by_context_of_other_slides(api: ModuleType, ssc: Any) -> None:
    stream = _stream(ssc)
    ssc.union(stream, stream.window(2, 2))


def transform_of_other_slides(api: ModuleType, ssc: Any) -> None:
    stream = _stream(ssc)
    ssc.transform([stream, stream.window(2, 2)], lambda rdds: rdds[0]).pprint()
    ssc.start()


def transform_with_three_arguments(api: ModuleType, ssc: Any) -> None:
    _stream(ssc).transform(lambda time, rdd, more: rdd)


def transform_with_four_arguments(api: ModuleType, ssc: Any) -> None:
    stream = _stream(ssc)
    stream.transformWith(lambda time, one, other, more: one, stream)


def active_or_created_by_no_function(api: ModuleType, ssc: Any) -> None:
    api.StreamingContext.getActiveOrCreate(None, "no function")


def slice_before_start(api: ModuleType, ssc: Any) -> None:
    _stream(ssc).slice(1, 2)


def remember_after_start(api: ModuleType, ssc: Any) -> None:
    _running(ssc)
    ssc.remember(10)


def duration_of_nothing(api: ModuleType, ssc: Any) -> None:
    api.StreamingContext(ssc.sparkContext)


def function_that_raises(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    collect("divided", pairs.map(lambda pair: pair[1] // 0))


def output_that_raises(ssc: Any, streams: Any, collect: Collect) -> None:
    def fail(rdd: Any) -> None:
        raise KeyError(rdd.count())

    [pairs] = streams
    pairs.foreachRDD(fail)


def transform_that_raises(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    collect("nothing", pairs.transform(lambda rdd: rdd.no_such_method()))


def state_function_that_raises(ssc: Any, streams: Any, collect: Collect) -> None:
    def fail(values: list[int], state: int | None) -> int:
        raise ValueError(values)

    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams
    collect("states", pairs.updateStateByKey(fail))


FAILURES = (
    Program(function_that_raises, (PAIRS,), 2),
    Program(output_that_raises, (PAIRS,), 2),
    Program(transform_that_raises, (PAIRS,), 2),
    Program(state_function_that_raises, (PAIRS,), 2),
)
"""Programs with a function that raises: so does the run, or whoever waits for its end."""

REFUSALS: tuple[Callable[[ModuleType, Any], None], ...] = (
    start_without_outputs,
    start_again_after_stop,
    stream_after_start,
    operation_after_start,
    output_after_start,
    map_after_stop,
    second_context,
    window_between_batches,
    slide_between_batches,
    window_of_a_window,
    reduce_window_between_batches,
    count_window_between_batches,
    union_of_nothing,
    union_of_other_slides,
    union_by_context_of_other_slides,
    transform_of_other_slides,
    transform_with_three_arguments,
    transform_with_four_arguments,
    active_or_created_by_no_function,
    slice_before_start,
    remember_after_start,
    duration_of_nothing,
)
