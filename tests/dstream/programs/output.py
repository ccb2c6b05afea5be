"""Programs with every kind of output, and what a program may ask its streams."""

from __future__ import annotations

import os
import re
import socket
import time
from collections import defaultdict
from contextlib import ExitStack, redirect_stdout
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from tests.dstream.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from tests.dstream.program import Collect, Queue

_NOTED = 2
"""An engine may have outputs of its own after those of the program."""
NUMBERS: Queue = ([5, 3, 8, 1], [2], [], [7, 7, 4, 9, 6])
MANY: Queue = (list(range(12)), list(range(10)), ["word", ("a", 1), None], [])


def for_each_rdd(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    first = collect.start

    def seen(rdd: Any) -> None:
        assert rdd.context is ssc.sparkContext
        total.append(rdd.sum())

    def seen_at(time: Any, rdd: Any) -> None:
        collect.record("elements", time, [rdd.getNumPartitions(), *sorted(rdd.collect())])
        collect.record("seconds", time, [time.timestamp() - first, time.tzinfo])
        collect.record("totals", time, [*total])

    total: list[int] = []
    numbers.foreachRDD(seen)
    numbers.foreachRDD(seen_at)


def printed(ssc: Any, streams: Any, collect: Collect) -> None:
    [elements] = streams
    elements.pprint()
    elements.filter(lambda element: element != 3).map(str).pprint(3)
    text, stdout = StringIO(), ExitStack()

    def record(number: int) -> None:
        time = datetime.fromtimestamp(collect.start + number * collect.interval)  # noqa: DTZ006
        found = re.sub(
            r"Time: .+", lambda line: f"Time: {line[0] == f'Time: {time}'}", text.getvalue()
        )
        collect.record("printed", time, found.splitlines())
        text.seek(0)
        text.truncate()

    collect.before(1, lambda: stdout.enter_context(redirect_stdout(text)))
    for number in range(1, len(MANY) + 1):
        collect.before(number + 1, partial(record, number))
    collect.before(len(MANY) + 2, stdout.close)


def saved_as_text(ssc: Any, streams: Any, collect: Collect) -> None:
    [elements] = streams
    folder = collect.folder / "saved"
    elements.saveAsTextFiles(str(folder / "all"))
    elements.map(str).saveAsTextFiles(str(folder / "strings"), "txt")

    def record(number: int) -> None:
        time = datetime.fromtimestamp(collect.start + number * collect.interval, UTC)
        stamp = str(round(time.timestamp() * 1000))
        for found in sorted(folder.glob(f"*-{stamp}*")):
            parts = sorted(part.name for part in found.glob("[!.]*"))
            lines = [line for part in parts for line in (found / part).read_text().splitlines()]
            collect.record(found.name.replace(stamp, "time"), time, [parts, lines])

    for number in range(1, len(MANY) + 1):
        collect.before(number + 1, partial(record, number))


def sliced(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    doubled = numbers.map(lambda number: 2 * number)
    ssc.remember(10)
    collect("doubled", doubled)
    start = datetime.fromtimestamp(collect.start)  # noqa: DTZ006

    def record(name: str, begin: Any, end: Any) -> None:
        found = [sorted(rdd.collect()) for rdd in doubled.slice(begin, end)]
        collect.record(name, start + timedelta(seconds=4), found)

    seconds = timedelta(seconds=1)
    collect.before(5, lambda: record("all", start + seconds, start + 4 * seconds))
    collect.before(5, lambda: record("numbers", collect.start + 2, collect.start + 3))
    collect.before(5, lambda: record("one", start + 2 * seconds, start + 2 * seconds))
    collect.before(5, lambda: record("before the first", start - 5 * seconds, start + seconds))


def in_order(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    done: list[str] = []

    def note(name: str) -> Any:
        return lambda time, rdd: done.append(f"{collect.number(time)} {name}")

    numbers.foreachRDD(note("first"))
    numbers.map(str).foreachRDD(note("second"))
    numbers.window(2, 2).foreachRDD(note("every other"))
    numbers.foreachRDD(note("last"))
    numbers.foreachRDD(lambda time, rdd: collect.record("done", time, [*done]))


def listener(api: ModuleType, note: Callable[[Any, str], None], started: list[str]) -> Any:
    """Make a listener that notes what it gets of each batch, and of its first two outputs."""

    class Listener(api.StreamingListener):  # type: ignore[misc, name-defined]
        def onStreamingStarted(self, streamingStarted: Any) -> None:  # noqa: N802, N803
            started.append("started")

        def onBatchSubmitted(self, batchSubmitted: Any) -> None:  # noqa: N802, N803
            note(batchSubmitted.batchInfo(), "submitted")

        def onBatchStarted(self, batchStarted: Any) -> None:  # noqa: N802, N803
            note(batchStarted.batchInfo(), "batch started")

        def onBatchCompleted(self, batchCompleted: Any) -> None:  # noqa: N802, N803
            info = batchCompleted.batchInfo()
            whole = info.processingDelay() + info.schedulingDelay() == info.totalDelay()
            ended = info.submissionTime() <= info.processingStartTime() <= info.processingEndTime()
            note(info, f"completed {whole} {ended}")

        def onOutputOperationStarted(self, outputOperationStarted: Any) -> None:  # noqa: N802, N803
            info = outputOperationStarted.outputOperationInfo()
            if info.id() < _NOTED:
                note(info, f"operation {info.id()} started")

        def onOutputOperationCompleted(self, outputOperationCompleted: Any) -> None:  # noqa: N802, N803
            info = outputOperationCompleted.outputOperationInfo()
            if info.id() < _NOTED:
                note(info, f"operation {info.id()} completed {info.failureReason()}")

    return Listener()


def listened(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    heard: dict[int, list[str]] = defaultdict(list)
    started: list[str] = []

    def note(info: Any, what: str) -> None:
        heard[round(info.batchTime().milliseconds() / 1000 - collect.start)].append(what)

    def record(number: int) -> None:
        time = datetime.fromtimestamp(collect.start + number, UTC)
        collect.record("heard", time, [*started, *heard[number]])

    ssc.addStreamingListener(listener(collect.api, note, started))
    collect("numbers", numbers)
    numbers.foreachRDD(lambda rdd: None)
    for number in range(1, 4):
        collect.before(number + 1, partial(record, number))


def text_files(ssc: Any, streams: Any, collect: Collect) -> None:
    lines = ssc.textFileStream(str(folder_in(collect)))
    put(collect, 1, "one.txt", b"a b\nc\n")
    put(collect, 3, "two.txt", "\n žluťoučký kůň \n".encode())
    put(collect, 3, "three.txt", b"d\r\ne")
    put(collect, 3, ".hidden", b"not read")
    put(collect, 4, "empty.txt", b"")
    collect("lines", lines)
    collect("counts", lines.flatMap(str.split).countByValue())
    collect("count of three", lines.window(3).count())


def binary_records(ssc: Any, streams: Any, collect: Collect) -> None:
    records = ssc.binaryRecordsStream(str(folder_in(collect)), 3)
    put(collect, 2, "one.bin", bytes(range(250, 256)) + b"\n\r\0")
    put(collect, 3, "two.bin", b"abcdef")
    collect("records", records)
    collect("sums", records.map(sum).reduce(max))


def folder_in(collect: Collect) -> Path:
    """Make the folder that a program reads files of."""
    folder = collect.folder / "in"
    folder.mkdir(exist_ok=True)
    return folder


def put(collect: Collect, number: int, name: str, content: bytes) -> None:
    """Move a file into the folder before a batch, as new as the batch."""

    def move() -> None:
        path = collect.folder / f"{name}.tmp"
        path.write_bytes(content)
        written = collect.start + (number - 0.5) * collect.interval
        os.utime(path, (written, written))
        path.rename(folder_in(collect) / name)

    collect.before(number, move)


def queues(ssc: Any, streams: Any, collect: Collect) -> None:
    collect("at once", ssc.queueStream([[1, 2], [3], [4]], oneAtATime=False))
    collect("default", ssc.queueStream([["a"], ["b", "c"]], default=["nothing"]))
    sc = ssc.sparkContext
    rdds = [sc.range(3), sc.parallelize("xyz", 1), sc.parallelize([(1, 2)]).mapValues(str)]
    collect("rdds", ssc.queueStream(rdds))
    collect("default rdd", ssc.queueStream([[0]], True, sc.parallelize([9, 9], 1)))
    collect("at once by default", ssc.queueStream([[1], [2]], False, [3]))


def socket_lines(ssc: Any, streams: Any, collect: Collect) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    lines = ssc.socketTextStream("127.0.0.1", server.getsockname()[1], StorageLevel.MEMORY_ONLY)
    collect("lines", lines)
    collect("words of two", lines.window(2).flatMap(str.split).countByValue())
    connected: list[socket.socket] = []

    def send(text: str) -> None:
        if not connected:
            connected.append(server.accept()[0])
        connected[0].sendall(text.encode())
        time.sleep(1.5)

    collect.before(2, lambda: send("to be or\nnot to be\n"))
    collect.before(3, lambda: send("že ano\n\nlast\n"))

    def close() -> None:
        server.close()
        connected[0].close()

    collect.before(5, close)


PROGRAMS = (
    Program(for_each_rdd, (NUMBERS,), 4, ordered=frozenset({"seconds", "elements", "totals"})),
    Program(printed, (MANY,), 6, ordered=frozenset({"printed"})),
    Program(saved_as_text, (MANY,), 5, ordered=frozenset({"all-time", "strings-time.txt"})),
    Program(sliced, (NUMBERS,), 5, ordered=frozenset({"all", "numbers", "one"})),
    Program(in_order, (NUMBERS,), 4, ordered=frozenset({"done"})),
    Program(listened, (NUMBERS,), 4, ordered=frozenset({"heard"})),
    Program(text_files, (), 6),
    Program(binary_records, (), 4),
    Program(queues, (), 5),
    Program(socket_lines, (), 5),
)
