from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from tests.apps import wait_for

from millstream.errors import InboxClosedError
from millstream.landing.inbox import Inbox, Room

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Landing:
    """Stands in for the query: lands files when told to."""

    def __init__(self, place: Path) -> None:
        self._place, self.name = place, ""

    def land(self, *, files: int = 1) -> None:
        waiting = [f.name for f in sorted(self._place.glob("*.txt")) if f.name > self.name]
        self.name = waiting[:files][-1]

    @property
    def lines(self) -> list[str]:
        files = sorted(self._place.glob("*.txt"))
        return [line for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "orders")


@pytest.fixture
def inbox(landing: Landing, tmp_path: Path) -> Iterator[Inbox]:
    inbox = Inbox(tmp_path / "orders", epoch=1, landed=lambda: landing.name)
    yield inbox
    inbox.close()


def test_a_record_is_acknowledged_when_it_is_landed(inbox: Inbox, landing: Landing) -> None:
    putting = threading.Thread(target=inbox.put, args=("one",))
    putting.start()
    wait_for(lambda: landing.lines == ["one"])
    assert putting.is_alive()

    landing.land()
    putting.join(60)

    assert not putting.is_alive()


def test_what_comes_while_files_wait_goes_into_one_batch(
    inbox: Inbox, landing: Landing, tmp_path: Path
) -> None:
    for number in range(2):
        wait_for((tmp_path / "orders" / inbox.offer(f"early {number}")).exists)
    for number in range(50):
        inbox.offer(f"later {number}")
    time.sleep(0.1)
    assert len(landing.lines) == 2

    landing.land()
    wait_for(lambda: len(landing.lines) == 52)

    assert landing.lines[2:] == [f"later {number}" for number in range(50)]


def test_no_more_waits_than_the_next_batch_can_take(landing: Landing, tmp_path: Path) -> None:
    room = [Room(3, batch_s=7)]
    inbox = Inbox(tmp_path / "orders", epoch=1, landed=lambda: landing.name, room=lambda: room[0])
    wait_for((tmp_path / "orders" / inbox.offer("under way")).exists)
    assert inbox.waiting == 0

    wait_for((tmp_path / "orders" / inbox.offer("1", "2")).exists)
    assert inbox.waiting == 2
    assert inbox.try_offer("3", "4")
    assert inbox.try_offer("5") is None
    assert (inbox.waiting, inbox.room_in_s) == (4, 7)

    # The batch under way is landed, and the next one reads two of the four.
    landing.land()
    assert inbox.waiting == 2
    assert inbox.try_offer("5")

    room[0] = Room(1)
    offering = threading.Thread(target=inbox.offer, args=("6",))
    offering.start()
    time.sleep(0.1)
    assert offering.is_alive()
    landing.land()
    wait_for(lambda: inbox.waiting == 0)
    offering.join(60)
    assert not offering.is_alive()
    inbox.close()


def test_a_record_of_several_lines_is_several_records(inbox: Inbox, landing: Landing) -> None:
    inbox.offer(b"one\r\ntwo\n", "\nthree\n")
    wait_for(lambda: landing.lines)
    assert landing.lines == ["one", "two", "three"]


def test_nothing_is_acknowledged_at_once(inbox: Inbox) -> None:
    inbox.put("", b"\n")


def test_files_have_the_order_in_which_they_came(inbox: Inbox, tmp_path: Path) -> None:
    for number in range(2):
        wait_for((tmp_path / "orders" / inbox.offer(str(number))).exists)
    first, second = sorted(tmp_path.glob("orders/*.txt"))
    assert int(first.stat().st_mtime * 1000) < int(second.stat().st_mtime * 1000)


def test_landed_files_go_after_a_while(inbox: Inbox, landing: Landing, tmp_path: Path) -> None:
    for number in range(30):
        file = inbox.offer(str(number))
        wait_for((tmp_path / "orders" / file).exists)
        landing.land()
    assert len(list(tmp_path.glob("orders/*.txt"))) <= 12


def test_a_driver_that_was_overtaken_acknowledges_nothing_here(
    inbox: Inbox, landing: Landing, tmp_path: Path
) -> None:
    later = Inbox(tmp_path / "orders", epoch=2, landed=lambda: landing.name)
    inbox.offer("of the overtaken")
    wait_for(lambda: landing.lines)
    landing.land()
    putting = threading.Thread(target=later.put, args=("mine",))
    putting.start()
    wait_for(lambda: "mine" in landing.lines)
    assert putting.is_alive()

    landing.land()
    putting.join(60)

    assert not putting.is_alive()
    later.close()


def test_what_was_taken_when_the_app_stops_is_kept_for_the_next_run(
    inbox: Inbox, landing: Landing
) -> None:
    for number in range(5):
        inbox.offer(str(number))
    inbox.close()
    assert landing.lines == ["0", "1", "2", "3", "4"]


def test_an_app_that_stops_acknowledges_nothing_more(inbox: Inbox, landing: Landing) -> None:
    raised: list[BaseException] = []

    def put() -> None:
        try:
            inbox.put("one")
        except InboxClosedError as error:
            raised.append(error)

    putting = threading.Thread(target=put)
    putting.start()
    wait_for(lambda: landing.lines)
    inbox.close()
    putting.join(60)

    assert [str(error).splitlines()[0] for error in raised] == [
        "[INBOX_CLOSED] source 'orders' accepts no more records: the app stops; "
        "the records may or may not be landed"
    ]
    with pytest.raises(InboxClosedError):
        inbox.offer("two")
