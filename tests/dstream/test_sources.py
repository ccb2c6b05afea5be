from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from millstream.dstream.bucket import read_elements, write_elements
from millstream.dstream.events import Events, EventValue, StreamingListener
from millstream.dstream.home import Journal, StreamHome
from millstream.dstream.java_error import as_of_java
from millstream.dstream.receiver import ReceivedLines, ReceivedSource
from millstream.dstream.sources import FolderSource
from millstream.errors import InboxClosedError, MillstreamError, UserCodeError, fault

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = cast("Any", None)


def folder_source(folder: Path) -> FolderSource:
    return FolderSource.of("textFileStream", str(folder), lambda context, file: NOTHING)


def names(part: Any) -> list[str]:
    return [name.rsplit("/", 1)[1] for name in part]


def test_a_folder_gives_each_file_to_one_batch_and_those_of_a_pause_to_the_next(
    tmp_path: Path,
) -> None:
    folder, place = tmp_path / "in", tmp_path / "place"
    folder.mkdir()
    (folder / "old").touch()
    opened = folder_source(folder).open(NOTHING, place, [], NOTHING)

    (folder / "b").touch()
    (folder / ".hidden").touch()
    (folder / "_temporary").touch()
    first = opened.plan()
    (folder / "c").touch()
    second = opened.plan()
    opened.forget(first)
    (folder / "d").touch()
    third = folder_source(folder).open(NOTHING, place, [second], NOTHING).plan()

    assert [names(part) for part in (first, second, third)] == [["b"], ["c"], ["d"]]


def test_a_start_without_a_batch_loses_no_file_of_the_pause(tmp_path: Path) -> None:
    folder, place = tmp_path / "in", tmp_path / "place"
    folder.mkdir()
    (folder / "old").touch()
    folder_source(folder).open(NOTHING, place, [], NOTHING)

    (folder / "new").touch()
    part = folder_source(folder).open(NOTHING, place, [], NOTHING).plan()

    assert names(part) == ["new"]


def test_a_torn_note_of_files_is_dropped_and_notes_do_not_grow(tmp_path: Path) -> None:
    folder, place = tmp_path / "in", tmp_path / "place"
    folder.mkdir()
    opened = folder_source(folder).open(NOTHING, place, [], NOTHING)
    parts = []
    for name in ("a", "b", "c"):
        (folder / name).touch()
        parts.append(opened.plan())
    opened.forget(parts[0])
    opened.forget(parts[1])
    with (place / "seen").open("a") as log:
        log.write(json.dumps(parts[2])[:-3])
    (folder / "a").unlink()

    again = folder_source(folder).open(NOTHING, place, parts[2:], NOTHING)
    again.forget(parts[2])
    last = folder_source(folder).open(NOTHING, place, [[]], NOTHING)
    (folder / "d").touch()

    assert names(last.plan()) == ["d"]
    noted = [json.loads(line) for line in (place / "seen").read_text().splitlines()]
    assert [names(each) for each in noted] == [["b", "c"]]


def test_notes_outlast_a_folder_that_is_not_mounted(tmp_path: Path) -> None:
    folder, place = tmp_path / "in", tmp_path / "place"
    folder.mkdir()
    (folder / "old").touch()
    folder_source(folder).open(NOTHING, place, [], NOTHING)
    folder.rename(tmp_path / "elsewhere")

    opened = folder_source(folder).open(NOTHING, place, [], NOTHING)
    (tmp_path / "elsewhere").rename(folder)

    assert opened.plan() == []


@pytest.mark.parametrize("folder", ["hdfs://host/in", "s3a://bucket/in", "hdfs:/in"])
def test_a_folder_of_another_file_system_is_refused(folder: str) -> None:
    with pytest.raises(MillstreamError, match="not a folder of this machine") as refused:
        FolderSource.of("textFileStream", folder, lambda context, file: NOTHING)

    assert refused.value.code == "DSTREAM_ARGUMENT"


@pytest.mark.parametrize("folder", ["/in", "file:/in", "file:///in"])
def test_a_folder_of_this_machine_may_have_a_scheme(folder: str) -> None:
    assert FolderSource.of("textFileStream", folder, lambda c, f: NOTHING).folder == "/in"


def test_lines_are_in_the_file_of_one_batch(tmp_path: Path) -> None:
    inbox = ReceivedLines(tmp_path, first=3, name="socket")

    name = inbox.offer("a\n\nb", b"c")
    [[taken, rows]] = inbox.take()
    nothing = inbox.take()

    assert (tmp_path / taken).read_bytes() == b"a\n\nb\nc\n"
    assert (taken, rows, nothing) == (name, 4, [])
    assert inbox.has_landed(name)


def test_accepted_lines_outlast_a_killed_driver(tmp_path: Path) -> None:
    inbox = ReceivedLines(tmp_path, first=0, name="socket")

    name = inbox.offer("a")

    # What other processes see is what a killed one leaves.
    assert (tmp_path / name).read_bytes() == b"a\n"
    inbox.close()


def test_lines_of_a_stopped_inbox_are_in_the_next_batch(tmp_path: Path) -> None:
    inbox = ReceivedLines(tmp_path, first=0, name="socket")
    name = inbox.offer("a", "b")

    inbox.close()
    inbox.close()

    assert inbox.take() == [[name, 2]]
    assert inbox.take() == []


class Unreachable:
    """A receiver of a server that is not there."""

    def receive(self, inbox: Any) -> None:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")


def test_a_receiver_that_fails_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = ReceivedSource(Unreachable(), "socket here:1", 0)

    opened = source.open(NOTHING, tmp_path, [], Events([]))
    opened.close()

    assert "nobody listens; it starts again in 2.0 s" in caplog.text


def test_a_listener_may_close_the_receiver_that_calls_it(tmp_path: Path) -> None:
    closed: list[object] = []

    class Stops(StreamingListener):
        def onReceiverError(self, receiverError: Any) -> None:  # noqa: N802, N803
            is_opened.wait()
            opened.close()
            closed.append(opened)

    is_opened = threading.Event()
    opened = ReceivedSource(Unreachable(), "socket", 0).open(
        NOTHING, tmp_path, [], Events([Stops()])
    )
    is_opened.set()
    opened.close()

    assert closed == [opened]


def test_received_files_are_read_in_a_home_of_any_name(tmp_path: Path) -> None:
    read: list[str] = []

    class Reads:
        defaultParallelism = 2  # noqa: N815

        def textFile(self, files: str, tasks: int) -> Any:  # noqa: N802
            read.append(files)

        def union(self, rdds: Any) -> Any:
            return None

    opened = ReceivedSource(Unreachable(), "socket", 0).open(
        cast("Any", Reads()), tmp_path / "a,[b]", [], Events([])
    )
    opened.rdd([["1.txt", 1]])
    opened.close()

    assert read == [f"file://{tmp_path}/a{{\\,}}\\[b\\]/1.txt"]


def test_put_waits_for_the_batch_and_fails_if_the_program_stops(tmp_path: Path) -> None:
    inbox = ReceivedLines(tmp_path, first=0, name="socket")
    taker = threading.Timer(0.1, inbox.take)
    taker.start()

    inbox.put("a")
    inbox.close()

    with pytest.raises(InboxClosedError):
        inbox.put("b")
    taker.join()


def test_a_bucket_is_read_as_it_was_written(tmp_path: Path) -> None:
    pairs = [(number, str(number)) for number in range(25_001)]

    assert write_elements(tmp_path / "bucket", iter(pairs), durable=True) == len(pairs)
    assert [*read_elements(tmp_path / "bucket")] == pairs
    assert [file.name for file in tmp_path.iterdir()] == ["bucket"]


def test_a_temporary_home_ends_with_the_process(tmp_path: Path) -> None:
    program = "from millstream.dstream.home import StreamHome; StreamHome(None); raise SystemExit"

    subprocess.run(
        [sys.executable, "-c", program], check=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )

    assert [*tmp_path.glob("dstream-*")] == []


def test_a_journal_continues_and_keeps_the_last_batch(tmp_path: Path) -> None:
    home = StreamHome(str(tmp_path))
    journal = Journal(home)
    for ms in (1000, 2000, 3000):
        planned = journal.add(ms, [[ms]])
    journal.finish(journal.batches[2000])
    journal.forget(journal.before(9000))

    again = Journal(home)
    home.close()

    assert [*again.batches] == [2000, 3000]
    assert again.waiting == [planned]
    assert again.add(4000, []).number == 3


def test_a_home_of_another_kind_is_refused(tmp_path: Path) -> None:
    home = StreamHome(str(tmp_path))
    home.home.write_manifest({"app": "shop"})
    home.close()

    with pytest.raises(MillstreamError) as refused:
        StreamHome(str(tmp_path))

    assert refused.value.code == "HOME_OTHER_APP"


def test_a_listener_that_raises_harms_nobody() -> None:
    heard: list[Any] = []

    class Bad(StreamingListener):
        def onStreamingStarted(self, streamingStarted: Any) -> None:  # noqa: N802, N803
            raise ValueError

    class Good(StreamingListener):
        def onStreamingStarted(self, streamingStarted: Any) -> None:  # noqa: N802, N803
            heard.append(streamingStarted.time())

    Events([Bad(), Good()]).call("onStreamingStarted", time=5)

    assert heard == [5]
    with pytest.raises(AttributeError):
        EventValue(time=5).place()


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        (
            fault("DSTREAM_STATE", operation="start", why="it is started", use="stop it"),
            (RuntimeError, Py4JJavaError),
        ),
        (fault("DSTREAM_NO_OUTPUT"), (ValueError, IllegalArgumentException)),
        (
            fault("DSTREAM_RAISED", operation="pprint", time="12:00", cause="ValueError: x"),
            (UserCodeError, Py4JJavaError),
        ),
    ],
    ids=lambda each: getattr(each, "code", ""),
)
def test_an_error_is_also_what_pyspark_raises(
    error: MillstreamError, kinds: tuple[type[Exception], ...]
) -> None:
    both = as_of_java(error)
    again = pickle.loads(pickle.dumps(both))

    assert all(isinstance(both, kind) for kind in kinds)
    assert str(both) == str(error) == str(again)
    assert type(again) is type(both)
