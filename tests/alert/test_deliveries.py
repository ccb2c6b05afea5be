from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.alert.notices import NOTICE

from millstream.alert.deliveries import FILE, Deliveries, Silence
from millstream.alert.identity import Identity
from millstream.alert.outbox import NewRows, Position
from millstream.errors import OvertakenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from millstream.alert.deliveries import Due

OLD = """
CREATE TABLE notice (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, app TEXT NOT NULL, alert TEXT NOT NULL,
    key TEXT NOT NULL, event_time TEXT, row TEXT NOT NULL, content TEXT NOT NULL,
    repeats INTEGER NOT NULL DEFAULT 0, entered_at REAL NOT NULL, UNIQUE (alert, id));
CREATE TABLE delivery (
    notice INTEGER NOT NULL REFERENCES notice (seq), destination TEXT NOT NULL,
    state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, first_at REAL, next_at REAL NOT NULL,
    done_at REAL, reason TEXT NOT NULL DEFAULT '', PRIMARY KEY (notice, destination));
CREATE INDEX delivery_due ON delivery (state, next_at);
INSERT INTO notice VALUES (1, 'ab12', 'shop', 'unpicked', '{}', NULL, '{}', 'c', 0, 5.0);
INSERT INTO delivery (notice, destination, state, next_at) VALUES (1, 'log', 'pending', 5.0);
"""


@pytest.fixture
def deliveries(tmp_path: Path) -> Iterator[Deliveries]:
    with closing(Deliveries(tmp_path, epoch=1)) as opened:
        yield opened


def enter(deliveries: Deliveries, alert: str, count: int) -> None:
    rows = tuple({"order": f"o{n}"} for n in range(count))
    identity = Identity("shop", alert, ("order",))
    news = NewRows(rows, Position("t", 0), is_whole=False)
    deliveries.enter(identity, news, ["webhook", "log"], now=10.0)


def steps_of(deliveries: Deliveries, ask: Callable[[], object]) -> int:
    """Count what SQLite does, which depends on no clock."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    deliveries._db.set_progress_handler(count, 1)
    ask()
    deliveries._db.set_progress_handler(None, 1)
    return steps


@pytest.mark.parametrize(
    "ask",
    [
        lambda deliveries: deliveries.due("unpicked", "log", 20.0),
        lambda deliveries: deliveries.due("unpicked", "other", 20.0),
        lambda deliveries: deliveries.next_at("unpicked", "log"),
        lambda deliveries: list(deliveries.listed(limit=5)),
    ],
)
def test_what_is_next_is_found_at_once_however_much_waits(
    deliveries: Deliveries, ask: Callable[[Deliveries], object]
) -> None:
    enter(deliveries, "unpicked", 10)
    few = steps_of(deliveries, lambda: ask(deliveries))

    enter(deliveries, "late", 2000)
    enter(deliveries, "unpicked", 2000)
    many = steps_of(deliveries, lambda: ask(deliveries))

    assert many < 3 * few


def test_who_has_waited_longest_is_first(deliveries: Deliveries) -> None:
    enter(deliveries, "unpicked", 3)
    first = deliveries.due("unpicked", "log", 20.0)
    assert first is not None
    deliveries.note(first, "log", "pending", next_at=15.0)

    order = []
    while (due := deliveries.due("unpicked", "log", 20.0)) is not None:
        order.append(due.notice.about)
        deliveries.note(due, "log", "delivered")

    assert order == ["order=o1", "order=o2", "order=o0"]
    assert len(list(deliveries.listed(limit=2))) == 2


def test_a_file_of_an_earlier_release_is_read_and_written_on(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as old:
        old.executescript(OLD)

    with closing(Deliveries(tmp_path)) as looked:
        assert looked.counts()["pending"] == 1
    with closing(Deliveries(tmp_path, epoch=1)) as deliveries:
        due = deliveries.due("unpicked", "log", 20.0)
        assert due is not None
        deliveries.note(due, "log", "delivered")
        assert deliveries.next_at("unpicked", "log") is None


@pytest.mark.parametrize(
    ("key", "said", "is_covered"),
    [
        ('{"on":true}', "true", True),
        ('{"on":true}', "True", True),
        ('{"on":true}', "1", False),
        ('{"on":1}', "true", False),
        ('{"on":null}', "null", True),
        ('{"on":1.5}', "1.50", True),
        ('{"on":100000000000000000000000.0}', "1e23", True),
        ('{"on":"1.50"}', "1.50", True),
        ('{"on":"1.50"}', "1.5", False),
        ('{"on":"007"}', "7", False),
        ('{"on":"NaN"}', "NaN", True),
        ('{"on":{"x":1}}', '{"x": 1}', True),
        ('{"on":7}', "seven", False),
        ('{"off":1}', "null", False),
    ],
)
def test_a_silence_means_values_as_they_are_typed(key: str, said: str, is_covered: bool) -> None:
    notice = replace(NOTICE, key=key)

    assert Silence("", {"on": said}, until=9e9).covers(notice) == is_covered


def test_a_key_is_shown_as_it_is_typed() -> None:
    notice = replace(NOTICE, key='{"on":true,"of":null,"n":1.5,"order":"o1"}')

    assert notice.about == "on=true of=null n=1.5 order=o1"


def content_of(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / FILE)) as db:
        return list(db.iterdump())


@pytest.mark.parametrize("epoch", [2, 1], ids=["later epoch", "same epoch"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda stale, due: enter(stale, "unpicked", 5),
        lambda stale, due: stale.note(due, "log", "delivered"),
        lambda stale, due: stale.name_destinations("unpicked", ["another"]),
        lambda stale, due: stale.drop_all_but(()),
        lambda stale, due: stale.check_fence(),
    ],
    ids=["enter", "note", "name_destinations", "drop_all_but", "check_fence"],
)
def test_a_driver_that_was_overtaken_changes_nothing_whatever_it_asks_for(
    deliveries: Deliveries,
    tmp_path: Path,
    ask: Callable[[Deliveries, Due], object],
    epoch: int,
) -> None:
    enter(deliveries, "unpicked", 1)
    due = deliveries.due("unpicked", "log", 20.0)
    assert due is not None
    with closing(Deliveries(tmp_path, epoch=epoch)) as later:
        before = content_of(tmp_path)

        with pytest.raises(OvertakenError):
            ask(deliveries, due)

        assert content_of(tmp_path) == before
        ask(later, due)


def test_a_driver_with_a_lower_epoch_does_not_take_the_deliveries(tmp_path: Path) -> None:
    with closing(Deliveries(tmp_path, epoch=2)) as later:
        before = content_of(tmp_path)

        with pytest.raises(OvertakenError):
            Deliveries(tmp_path, epoch=1)

        assert content_of(tmp_path) == before
        later.check_fence()


def test_a_notice_is_due_at_its_time_and_not_before(deliveries: Deliveries) -> None:
    enter(deliveries, "unpicked", 1)
    due = deliveries.due("unpicked", "log", 10.0)
    assert due is not None

    deliveries.note(due, "log", "pending", next_at=60.0)

    assert deliveries.due("unpicked", "log", 59.9) is None
    assert deliveries.due("unpicked", "log", 60.0) is not None


def test_rows_that_cannot_be_entered_leave_nothing(deliveries: Deliveries) -> None:
    identity, nowhere = Identity("shop", "unpicked", ("order",)), [None]
    news = NewRows(({"order": "o1"},), Position("t", 0), is_whole=False)

    with pytest.raises(sqlite3.IntegrityError):
        deliveries.enter(identity, news, nowhere, now=10.0)  # type: ignore[arg-type]

    assert deliveries.position("unpicked") is None
    assert deliveries.enter(identity, news, ["log"], now=10.0) == 1
    [entry], [entered] = identity.entries(news.rows), deliveries.listed()
    assert entered.notice.id == identity.id_of(entry, 1)


def test_nobody_takes_over_between_the_look_at_the_fence_and_the_record(
    deliveries: Deliveries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    check = deliveries._check_fence

    def look(found: Sequence[tuple[int, str]]) -> None:
        nonlocal looked
        check(found)
        with (
            closing(sqlite3.connect(tmp_path / FILE, 0, isolation_level=None)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
        looked += 1

    monkeypatch.setattr(deliveries, "_check_fence", look)
    enter(deliveries, "unpicked", 1)
    due = deliveries.due("unpicked", "log", 10.0)
    assert due is not None
    deliveries.note(due, "log", "delivered")
    deliveries.drop_all_but([])

    assert looked == 3


def test_a_destination_that_is_gone_concerns_no_other_alert(deliveries: Deliveries) -> None:
    for alert in ("unpicked", "late"):
        deliveries.name_destinations(alert, ["webhook a", "log b"])
        enter(deliveries, alert, 1)

    deliveries.name_destinations("late", ["log b"])

    states = {(each.notice.alert, each.destination): each.state for each in deliveries.listed()}
    assert states == {
        ("unpicked", "webhook"): "pending",
        ("unpicked", "log"): "pending",
        ("late", "webhook"): "dead",
        ("late", "log"): "pending",
    }
