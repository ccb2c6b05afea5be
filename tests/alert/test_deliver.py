from __future__ import annotations

import shutil
import sqlite3
import time
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.alert.course import DiesError, Outcome, run_course
from tests.alert.notices import Scene, alert, row

import millstream as ms
from millstream.alert import deliver
from millstream.alert.deliveries import FILE, Deliveries, Silence
from millstream.alert.destination import Known, names_of
from millstream.crash import DELIVERY_POINTS, armed
from millstream.errors import OvertakenError, fault
from millstream.lake.log import commit_path
from millstream.systems.log.courier import LogCourier
from millstream.testing.hook import Hook, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.errors import MillstreamError
    from millstream.model.notice import Notice


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as hook:
        yield hook


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene.of(tmp_path / "home")


def states(scene: Scene) -> dict[str, int]:
    deliveries = Deliveries(scene.home.alerts)
    counts = deliveries.counts()
    deliveries.close()
    return {state: count for state, count in counts.items() if count}


def test_every_row_is_sent_to_every_destination_once_across_restarts(
    scene: Scene, hook: Hook
) -> None:
    reported = alert(ms.Webhook(hook.address), ms.Webhook(f"{hook.address}/second"), ms.Log())
    scene.commit(row("o1"), row("o2"))
    scene.commit(row("o1"))
    first = scene.driver(reported)
    first.drain()
    first.close()
    scene.commit(row("o3"))
    second = scene.driver(reported)
    second.drain()
    second.drain()
    second.close()

    orders = [(each.path, each.body["row"]["order"]) for each in hook.received]
    assert sorted(orders) == sorted(product(("/", "/second"), ("o1", "o1", "o2", "o3")))
    assert len(hook.keys) == 4
    assert len((scene.home.logs / "alerts.jsonl").read_text().splitlines()) == 4
    assert states(scene) == {"delivered": 12}


def test_a_driver_that_dies_anywhere_loses_nothing_and_repeats_under_the_same_key(
    scene: Scene, hook: Hook
) -> None:
    reported, trials, died = alert(ms.Webhook(hook.address), ms.Log()), 0, 0
    for point, nth in product(DELIVERY_POINTS, range(1, 6)):
        passed = 0

        def die(here: str, *_: object, point: str = point, nth: int = nth) -> None:
            nonlocal passed
            passed += here == point
            if here == point and passed == nth:
                raise DiesError

        trials += 1
        scene.commit(row(f"o{trials}"), row(f"p{trials}"))
        scene.commit(row(f"q{trials}"))
        driver = scene.driver(reported)
        with armed(scene.home.path, die):
            try:
                driver.drain()
            except DiesError:
                died += 1
        driver.close()
    last = scene.driver(reported)
    last.drain()
    last.close()

    rows = [each.body["row"]["order"] for each in hook.received]
    assert (trials, died) == (20, 16), "both commits of a trial are taken in at once"
    assert set(rows) == {f"{letter}{n}" for letter in "opq" for n in range(1, trials + 1)}
    keys = {(each.body["row"]["order"], each.key) for each in hook.received}
    assert len(keys) == 3 * trials, "a repeated delivery has another key"
    assert len(rows) - 3 * trials <= died, "more repeated than was under way"
    assert states(scene) == {"delivered": 6 * trials}


def test_a_driver_that_was_overtaken_sends_nothing(scene: Scene, hook: Hook) -> None:
    reported = alert(ms.Webhook(hook.address))
    scene.commit(row("o1"))
    zombie = scene.driver(reported)
    zombie.read_outboxes()

    scene.driver(reported).drain()
    scene.commit(row("o2"))

    with pytest.raises(OvertakenError):
        zombie.drain()
    zombie.close()
    assert [each.body["row"]["order"] for each in hook.received] == ["o1"]


def test_the_lease_is_looked_at_before_each_delivery(scene: Scene, hook: Hook) -> None:
    scene.commit(row("o1"), row("o2"), row("o3"))
    left = [None, fault("OVERTAKEN", theirs=2, mine=1, table="home")]

    def hold() -> None:
        if (error := left.pop(0)) is not None:
            raise error

    driver = scene.driver(alert(ms.Webhook(hook.address)), hold)
    with pytest.raises(OvertakenError):
        driver.drain()

    assert len(hook.received) == 1


def test_what_fails_is_tried_again_later_each_time_and_then_put_aside(
    scene: Scene, hook: Hook
) -> None:
    hook.replies.extend([Reply(500), Reply(503, {"Retry-After": "60"}), Reply(drops=True)])
    hook.replies.extend([Reply(500)] * 6)
    scene.commit(row("o1"))
    driver = scene.driver(alert(ms.Webhook(hook.address), retry_for="5 minutes"))
    waits = []
    while "pending" in states(scene) or not hook.received:
        driver.drain()
        deliveries = Deliveries(scene.home.alerts)
        next_at = deliveries.next_at("unpicked", "webhook")
        deliveries.close()
        if next_at is not None:
            waits.append(next_at - scene.at)
            scene.at = next_at

    assert waits[1] == 60
    assert all(2 * a >= b > a for a, b in pairwise(waits[2:]))
    assert states(scene) == {"dead": 1}
    assert [event.kind for event in scene.events] == ["alert_waits", "alert_dead"]
    assert len(hook.keys) == 1
    hook.replies.clear()
    deliveries = Deliveries(scene.home.alerts)
    assert deliveries.retry() == 1
    deliveries.close()
    driver.drain()
    driver.close()
    assert states(scene) == {"delivered": 1}


def test_an_answer_that_cannot_change_puts_a_notice_aside_and_the_others_go_on(
    scene: Scene, hook: Hook
) -> None:
    hook.replies.append(Reply(404, text="no hook"))
    scene.commit(row("o1"), row("o2"))
    driver = scene.driver(alert(ms.Webhook(hook.address)))

    driver.drain()

    driver.close()
    assert states(scene) == {"delivered": 1, "dead": 1}
    [event] = scene.events
    assert (event.kind, event.query) == ("alert_dead", "unpicked")
    assert "answered 404 Not Found: no hook" in event.detail


def test_a_destination_that_raises_anything_is_tried_again(scene: Scene) -> None:
    class Odd:
        def alert_faults(self, alert: str, at: object) -> Iterator[MillstreamError]:
            yield from ()

        def courier(self, place: Path) -> Odd:
            return self

        def send(self, notice: Notice) -> None:
            raise KeyError(notice.alert)

        def close(self) -> None:
            pass

    scene.commit(row("o1"))
    driver = scene.driver(alert(Odd(), ms.Log()))

    driver.drain()

    driver.close()
    assert states(scene) == {"delivered": 1, "pending": 1}
    [event] = scene.events
    assert event.kind == "alert_waits"
    assert "odd did not receive" in event.detail
    assert "KeyError: 'unpicked'" in event.detail


def test_a_silence_holds_for_what_it_is_about_until_it_ends(scene: Scene, hook: Hook) -> None:
    driver = scene.driver(alert(ms.Webhook(hook.address)))
    deliveries = Deliveries(scene.home.alerts)
    deliveries.silence(Silence("unpicked", {"order": "o1"}, until=scene.at + 60))
    deliveries.silence(Silence("other", {}, until=scene.at + 60))
    scene.commit(row("o1"), row("o2"))
    driver.drain()
    assert states(scene) == {"delivered": 1, "silenced": 1}

    scene.at += 61
    scene.commit(row("o1", "12:30:00"))
    driver.drain()
    assert states(scene) == {"delivered": 2, "silenced": 1}

    assert deliveries.retry(id_="") == 1
    driver.drain()
    deliveries.close()
    driver.close()
    assert sorted(each.body["row"]["order"] for each in hook.received) == ["o1", "o1", "o2"]


def test_what_waits_for_a_destination_that_is_gone_is_put_aside(scene: Scene, hook: Hook) -> None:
    hook.replies.append(Reply(500))
    scene.commit(row("o1"))
    first = scene.driver(alert(ms.Webhook(hook.address)))
    first.drain()
    first.close()

    scene.driver(alert(ms.Log())).close()

    deliveries = Deliveries(scene.home.alerts)
    [left] = deliveries.listed()
    deliveries.close()
    assert (left.state, left.reason) == ("dead", "the alert is no longer sent there")


def test_what_waits_for_a_destination_goes_there_when_another_is_taken_off_the_list(
    scene: Scene, hook: Hook
) -> None:
    with Hook() as other:
        other.replies.append(Reply(503))
        first, second = ms.Webhook(hook.address), ms.Webhook(other.address)
        scene.commit(row("o1"))
        before = scene.driver(alert(first, second))
        before.drain()
        before.close()
        scene.at += 100

        after = scene.driver(alert(second))
        after.drain()
        after.close()
        scene.driver(alert(ms.Webhook(f"{hook.address}/third"), second)).close()

        assert [each.body["row"]["order"] for each in other.received] == ["o1", "o1"]
    assert states(scene) == {"delivered": 2}


def test_what_waits_goes_to_an_address_that_was_mended(scene: Scene, hook: Hook) -> None:
    scene.commit(row("o1"))
    wrong = ms.Webhook("http://127.0.0.1:9/", timeout="1 second")
    before = scene.driver(alert(wrong, ms.Log()))
    before.drain()
    before.close()
    scene.at += 100

    after = scene.driver(alert(ms.Log(), ms.Webhook(hook.address)))
    after.drain()
    after.close()

    assert states(scene) == {"delivered": 2}
    assert len(hook.received) == 1


def test_a_name_of_a_destination_that_is_gone_is_not_given_to_another() -> None:
    known = [Known("webhook", "webhook a", is_gone=True), Known("webhook 2", "webhook b")]

    assert names_of(["webhook b", "webhook c"], known) == ["webhook 2", "webhook 3"]
    assert names_of(["webhook b", "webhook a"], known) == ["webhook 2", "webhook"]
    assert names_of(["webhook c", "webhook a"], known) == ["webhook 2", "webhook"]
    assert names_of(["log a", "log a"], known) == ["log", "log 2"]


def test_what_waits_of_an_alert_that_was_renamed_is_put_aside_and_holds_up_no_end(
    scene: Scene, hook: Hook
) -> None:
    hook.replies.append(Reply(500))
    scene.commit(row("o1"))
    first = scene.driver(alert(ms.Webhook(hook.address)))
    first.drain()
    first.close()
    renamed = scene.driver(replace(alert(ms.Webhook(hook.address)), name="late"))
    began = time.monotonic()

    renamed.finish()
    took = time.monotonic() - began
    before = states(scene)
    renamed.drop_all_but(["late"])
    renamed.close()

    assert took < 5
    assert before == {"pending": 1}
    deliveries = Deliveries(scene.home.alerts)
    [left] = deliveries.listed()
    assert (left.state, left.reason) == ("dead", "the alert is no longer declared")
    assert deliveries.retry() == 1
    deliveries.close()
    scene.at += 100
    again = scene.driver(alert(ms.Webhook(hook.address)))
    again.drain()
    again.close()
    assert states(scene) == {"delivered": 1}


def test_of_an_outbox_that_is_recomputed_only_new_rows_are_sent(scene: Scene, hook: Hook) -> None:
    reported = alert(ms.Webhook(hook.address))
    scene.commit_all([[row("o1"), row("o1")], [row("o2")]])
    first = scene.driver(reported)
    first.drain()
    first.close()

    shutil.rmtree(scene.home.table("unpicked"))
    scene.commit_all([[row("o2")], [row("o3"), row("o1")], [row("o1")], [row("o1")]])
    second = scene.driver(reported)
    second.drain()
    second.close()

    assert [each.body["row"]["order"] for each in hook.received[3:]] == ["o3", "o1"]
    assert len(hook.keys) == 5


def test_text_that_is_not_utf8_is_sent_by_its_bytes_and_the_rows_beside_it_too(
    scene: Scene, hook: Hook
) -> None:
    scene.commit(row("o1"), row("o2"), row("o3"))
    [file] = scene.home.table("unpicked").glob("*.parquet")
    odd = pa.array([b"o1", b"o\xff", b"o\xfe"]).cast(pa.string(), safe=False)
    pq.write_table(pq.ParquetFile(file).read().set_column(0, "order", odd), file)
    driver = scene.driver(alert(ms.Webhook(hook.address)))

    driver.drain()
    driver.drain()

    driver.close()
    reported = sorted(each.body["row"]["order"] for each in hook.received)
    assert reported == ["o1", r"o\xfe", r"o\xff"]
    [event] = scene.events
    assert (event.kind, event.query) == ("alert_waits", "unpicked")
    assert "text that is not UTF-8" in event.detail


def test_an_outbox_that_cannot_be_read_does_not_stop_other_alerts(scene: Scene, hook: Hook) -> None:
    scene.commit(row("o1"))
    [file] = scene.home.table("unpicked").glob("*.parquet")
    good = file.read_bytes()
    file.write_bytes(b"PAR1 is broken PAR1")
    scene.commit_to("late", row("o2"))
    driver = scene.driver(alert(ms.Webhook(hook.address)))
    driver.add(replace(alert(ms.Webhook(hook.address)), name="late"), "at")

    driver.drain()
    assert [each.body["alert"] for each in hook.received] == ["late"]
    file.write_bytes(good)
    driver.drain()

    driver.close()
    assert [each.body["alert"] for each in hook.received] == ["late", "unpicked"]
    assert [event.query for event in scene.events] == ["unpicked"]


def test_without_its_record_of_deliveries_everything_is_sent_again_under_the_same_keys(
    scene: Scene, hook: Hook
) -> None:
    reported = alert(ms.Webhook(hook.address), cooldown="10 minutes")
    scene.commit_all([[row("o1")], [row("o2"), row("o1", "12:05:00")]])
    for _ in range(2):
        driver = scene.driver(reported)
        driver.drain()
        driver.close()
        (scene.home.alerts / FILE).unlink()

    assert len(hook.received) == 4
    assert len(hook.keys) == 2


def test_while_it_runs_it_sends_at_once_and_one_that_hangs_does_not_hold_up_the_others(
    scene: Scene, hook: Hook
) -> None:
    scene.at = time.time()
    with Hook() as slow:
        slow.replies.append(Reply(hangs=True))
        to = (ms.Webhook(slow.address, timeout="3 seconds"), ms.Webhook(hook.address))
        driver = scene.driver(alert(*to))
        driver.start()
        scene.commit(row("o1"))
        until = time.monotonic() + 60
        while "delivered" not in states(scene) and time.monotonic() < until:
            time.sleep(0.02)
        assert len(hook.received) == 1
        assert states(scene) == {"delivered": 1, "pending": 1}
        scene.at += 30
        driver.finish()
        driver.close()

    assert states(scene) == {"delivered": 2}
    assert len(slow.keys) == 1


def test_the_end_of_a_run_does_not_wait_for_every_notice_of_a_destination_that_hangs(
    scene: Scene, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "_WAITS_AT_END_S", 1.0)
    scene.commit(*[row(f"o{n}") for n in range(30)])
    with Hook() as slow:
        slow.replies.extend([Reply(hangs=True)] * 100)
        to = (ms.Webhook(slow.address, timeout="300 ms"), ms.Webhook(hook.address))
        driver = scene.driver(alert(*to))
        began = time.monotonic()
        driver.finish()
        driver.close()
        took = time.monotonic() - began

    assert took < 6, "thirty notices that hang take nine seconds"
    assert states(scene) == {"delivered": 30, "pending": 30}
    assert len(hook.keys) == 30


def test_a_run_that_is_stopped_leaves_what_a_slow_destination_does_not_take_in_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "_WAITS_AT_END_S", 2.0)
    monkeypatch.setattr(LogCourier, "send", lambda *_: time.sleep(0.1))
    scene.commit(*[row(f"o{n}") for n in range(200)])
    driver = scene.driver(alert(ms.Log()))
    driver.start()
    began = time.monotonic()

    driver.close()

    assert time.monotonic() - began < 15, "two hundred take twenty seconds"
    left = states(scene)
    assert left["delivered"] > 0
    assert left["pending"] > 100


def test_a_destination_that_fails_is_left_alone_and_then_sent_everything(
    scene: Scene, hook: Hook
) -> None:
    hook.replies.append(Reply(503))
    scene.commit(row("o1"), row("o2"), row("o3"))
    driver = scene.driver(alert(ms.Webhook(hook.address)))

    driver.drain()
    assert len(hook.received) == 1
    scene.at += 10
    driver.drain()

    driver.close()
    assert states(scene) == {"delivered": 3}
    assert len(hook.received) == 4


def test_whatever_fails_and_whenever_it_dies_every_row_is_sent_under_one_key(
    tmp_path: Path,
) -> None:
    total = Outcome()
    for seed in range(12):
        total.plus(run_course(tmp_path / str(seed), seed))

    assert (total.lost, total.rekeyed, total.by_zombies, total.untold) == (0, 0, 0, 0)
    assert total.rows < total.posts
    assert total.deaths > 3
    assert total.zombies > 1


def test_the_file_of_deliveries_can_be_read_by_any_program(scene: Scene) -> None:
    scene.commit(row("o1"))
    driver = scene.driver(alert(ms.Log()))
    driver.drain()
    driver.close()

    read = sqlite3.connect(scene.home.alerts / FILE)
    found = read.execute("SELECT alert, state FROM notice JOIN delivery ON seq = notice").fetchall()
    read.close()
    assert found == [("unpicked", "delivered")]


def test_an_outbox_whose_old_commits_are_gone_is_read_as_a_whole(scene: Scene, hook: Hook) -> None:
    reported = alert(ms.Webhook(hook.address))
    scene.commit(row("o1"))
    first = scene.driver(reported)
    first.drain()
    first.close()
    scene.commit(row("o2"))
    scene.commit(row("o3"))
    outbox = scene.home.table("unpicked")
    DeltaTable(str(outbox)).create_checkpoint()
    for version in range(2):
        commit_path(outbox, version).unlink()

    later = scene.driver(reported)
    later.drain()
    later.close()

    assert sorted(each.body["row"]["order"] for each in hook.received) == ["o1", "o2", "o3"]


def test_rows_that_maintenance_wrote_again_are_not_sent_again(scene: Scene, hook: Hook) -> None:
    reported = alert(ms.Webhook(hook.address))
    scene.commit(row("o1"))
    scene.commit(row("o2"))
    driver = scene.driver(reported)
    driver.drain()

    DeltaTable(str(scene.home.table("unpicked"))).optimize.compact()
    driver.drain()
    driver.close()

    assert [each.body["row"]["order"] for each in hook.received] == ["o1", "o2"]
