from __future__ import annotations

import pickle
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from millstream.dstream.bucket import read_elements, write_elements
from millstream.dstream.events import Events, EventValue, StreamingListener
from millstream.dstream.home import Journal, StreamHome
from millstream.dstream.java_error import as_of_java
from millstream.dstream.receiver import ReceivedLines
from millstream.dstream.sources import FolderSource
from millstream.errors import InboxClosedError, MillstreamError, UserCodeError, fault

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = cast("Any", None)


def folder_source(folder: Path) -> FolderSource:
    return FolderSource.of(str(folder), lambda context, file: NOTHING)


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
    first = opened.plan()
    (folder / "c").touch()
    second = opened.plan()
    opened.forget(first)
    (folder / "d").touch()
    third = folder_source(folder).open(NOTHING, place, [second], NOTHING).plan()

    assert [names(part) for part in (first, second, third)] == [["b"], ["c"], ["d"]]


def test_lines_are_in_the_file_of_one_batch(tmp_path: Path) -> None:
    inbox = ReceivedLines(tmp_path, first=3, name="socket")

    name = inbox.offer("a\n\nb", b"c")
    [[taken, rows]] = inbox.take()
    nothing = inbox.take()

    assert (tmp_path / taken).read_bytes() == b"a\n\nb\nc\n"
    assert (taken, rows, nothing) == (name, 4, [])
    assert inbox.has_landed(name)


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
