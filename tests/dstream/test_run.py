"""Planning, the end and what a failure leaves; no JVM is needed."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.dstream.test_sources import Unreachable
from tests.faults import raises

from millstream.dstream.computation import Computation
from millstream.dstream.events import StreamingListener
from millstream.dstream.home import StreamHome
from millstream.dstream.node import Node, ReducedWindowNode, SourceNode, TransformNode, WindowNode
from millstream.dstream.program import ProgramOutput, StreamProgram, here
from millstream.dstream.receiver import ReceivedSource
from millstream.dstream.run import LiveRun, ProgramRun
from millstream.dstream.sources import QueueSource
from millstream.dstream.stream import _with_time
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millstream.dstream.sources import BatchSource

NOTHING = cast("Any", None)
WITHIN_S = 10
QUEUE = QueueSource((), one_at_a_time=True, default=None)


def source_node(source: BatchSource = QUEUE, interval_ms: int = 1000) -> SourceNode:
    return SourceNode((), interval_ms, here(), source)


def program(
    *sources: SourceNode, output: Node | None = None, listeners: tuple[Any, ...] = ()
) -> StreamProgram:
    node = output or sources[0]
    outputs = (ProgramOutput(node, lambda time, rdd: None, "foreachRDD", here()),)
    return StreamProgram(sources[0].slide_ms, sources, outputs, (), 0, {}, [*listeners])


def window_of_five(slide_ms: int = 5000) -> StreamProgram:
    source = source_node()
    return program(source, output=WindowNode((source,), slide_ms, here(), window_ms=5000))


def planned_at(home: Path, given: StreamProgram, now_ms: int, times: int) -> list[int]:
    run = ProgramRun(NOTHING, given, StreamHome(str(home)), now_ms)
    run.catch_up(now_ms)
    for _ in range(times):
        run.plan(run.next_ms(now_ms))
    run.close()
    return [*run.journal.batches]


def test_the_end_of_a_slide_that_falls_into_a_pause_is_planned(tmp_path: Path) -> None:
    planned_at(tmp_path, window_of_five(), 5000, 4)

    assert planned_at(tmp_path, window_of_five(), 11_200, 1) == [
        *(6000, 7000, 8000, 9000),
        *(10_000, 12_000),
    ]


def test_a_long_pause_plans_only_windows_that_have_batches(tmp_path: Path) -> None:
    planned_at(tmp_path, window_of_five(), 5000, 4)

    assert planned_at(tmp_path, window_of_five(), 1_000_200, 1)[4:] == [10_000, 1_001_000]


def test_a_pause_of_windows_that_slide_with_each_batch_has_no_batches(tmp_path: Path) -> None:
    planned_at(tmp_path, window_of_five(1000), 5000, 4)

    assert planned_at(tmp_path, window_of_five(1000), 11_200, 1)[4:] == [12_000]


class Query:
    """A query of ticks, and what makes it; the batches wait as those of Spark do."""

    def __init__(self, *, fails: bool = False) -> None:
        self.isActive, self._fails = True, fails
        self._thread: threading.Thread | None = None

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *given: Any) -> Any:
        if given and callable(given[0]):
            self._run_one = given[0]
        return self

    def start(self) -> Query:
        def run() -> None:
            while self.isActive:
                self._run_one(None, 0)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        return self

    def exception(self) -> None: ...

    def stop(self) -> None:
        self.isActive = False
        assert self._thread is not None
        self._thread.join()
        if self._fails:
            raise OSError


def live(
    folder: Path, *sources: SourceNode, query: Query | None = None, listeners: tuple[Any, ...] = ()
) -> LiveRun:
    home = StreamHome(str(folder))
    given = program(*(sources or (source_node(interval_ms=50),)), listeners=listeners)
    run = ProgramRun(NOTHING, given, home, int(time.time() * 1000))
    # The RDDs are those of Spark; what is tested here plans and ends.
    run._act = lambda number, output, planned: None  # type: ignore[method-assign]
    return LiveRun(run, cast("Any", query or Query()), "test")


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_times_are_planned_one_by_one_however_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []

    class Slow(StreamingListener):
        def onBatchSubmitted(self, batchSubmitted: Any) -> None:  # noqa: N802, N803
            times.append(batchSubmitted.batchInfo().batchTime().milliseconds())
            if len(times) == 2:
                time.sleep(0.3)

    running = live(tmp_path, listeners=(Slow(),))
    wait_for(lambda: len(times) >= 12)
    running.stop(gracefully=False)

    assert times == [*range(times[0], times[0] + 50 * len(times), 50)]


def test_a_query_that_was_stopped_ends_the_program(tmp_path: Path) -> None:
    query = Query()
    running = live(tmp_path, query=query)
    query.isActive = False

    with pytest.raises(MillstreamError, match="was stopped") as ended:
        assert running.wait(WITHIN_S)

    assert ended.value.code == "DSTREAM_STATE"
    running.stop(gracefully=True)


def test_a_query_that_cannot_be_stopped_leaves_no_lease(tmp_path: Path) -> None:
    running = live(tmp_path, query=Query(fails=True))

    with pytest.raises(OSError):  # noqa: PT011 - that of the query
        running.stop(gracefully=False)

    assert running.wait(0)
    StreamHome(str(tmp_path)).close()


@pytest.mark.parametrize("event", ["onReceiverError", "onBatchSubmitted", "onBatchStarted"])
def test_a_listener_may_stop_the_program(tmp_path: Path, event: str) -> None:
    def stop(*_: Any, **__: Any) -> None:
        is_live.wait()
        running.stop(gracefully=False)
        stopped.append(event)

    is_live = threading.Event()
    stopped: list[str] = []
    query = Query()
    listener = StreamingListener()
    setattr(listener, event, stop)
    receiver = source_node(ReceivedSource(Unreachable(), "socket", 0), 50)
    running = live(tmp_path, receiver, query=query, listeners=(listener,))
    is_live.set()

    assert running.wait(WITHIN_S)
    wait_for(lambda: stopped)
    assert not query.isActive
    StreamHome(str(tmp_path)).close()


class Broken:
    """A source that cannot be opened."""

    def open(self, *_: Any) -> Any:
        raise OSError


def receivers() -> Iterator[threading.Thread]:
    return (thread for thread in threading.enumerate() if thread.name == "dstream receiver")


def test_a_start_that_fails_leaves_no_receiver_and_no_lease(tmp_path: Path) -> None:
    receiver = source_node(ReceivedSource(Unreachable(), "socket", 0))

    with pytest.raises(OSError):  # noqa: PT011 - that of the source
        ProgramRun(
            NOTHING, program(receiver, source_node(Broken())), StreamHome(str(tmp_path)), 5000
        )

    assert [*receivers()] == []
    StreamHome(str(tmp_path)).close()


def test_an_incremental_window_may_not_change(tmp_path: Path) -> None:
    def identity(window_ms: int, slide_ms: int) -> str:
        return ReducedWindowNode((source_node(),), slide_ms, here(), 0, 2, max, min, window_ms).kind

    assert len({identity(6000, 1000), identity(8000, 1000), identity(6000, 500)}) == 3


def test_a_slice_of_a_stream_that_no_output_needs_is_refused() -> None:
    computed = Computation(NOTHING, [], NOTHING, NOTHING, 0, {}, remembered_ms=0, levels={})

    with pytest.raises(MillstreamError, match="no output of the program needs") as refused:
        computed.slice(source_node(), 0, 1000)

    assert refused.value.code == "DSTREAM_STATE"
    assert isinstance(refused.value, RuntimeError)


def test_two_threads_make_the_rdd_of_a_batch_once(tmp_path: Path) -> None:
    class Slow(Node):
        def compute(self, batches: Computation, ms: int) -> Any:
            made.append(ms)
            time.sleep(0.1)

    made: list[int] = []
    node = Slow((), 1000, here())
    run = ProgramRun(NOTHING, program(source_node(), output=node), StreamHome(str(tmp_path)), 0)
    run.plan(1000)
    threads = [threading.Thread(target=run.computation.rdd, args=(node, 1000)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.close()

    assert made == [1000]


def test_what_is_guaranteed_needs_a_checkpoint_directory() -> None:
    output = ProgramOutput(source_node(), lambda time, rdd: None, "pprint", here())

    assert output.guarantee(is_durable=True) == "at least once, under one batch time"
    assert output.guarantee(is_durable=False) == "lost with the driver: no checkpoint directory"


class Empty:
    """Batches in which no stream has an RDD."""

    def rdd(self, _: Node, __: int) -> None:
        return None


def test_a_union_with_a_stream_that_has_no_rdd_in_a_batch_is_refused() -> None:
    source = SourceNode((), 1000, here(), cast("Any", QUEUE))
    union = TransformNode((source, source), 1000, here(), max, "refuse")

    with raises("DSTREAM_NO_RDD", match="a stream has no RDD at 19"):
        union.compute(cast("Any", Empty()), 5000)


def test_a_function_of_another_number_of_arguments_is_refused() -> None:
    with raises("DSTREAM_FUNCTION", match="transform: func should take one or two arguments"):
        _with_time(lambda one, two, three: one, 1, "transform")
