from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings, strategies as st
from tests.alert.notices import moment, row

from millstream.alert.deliveries import Deliveries
from millstream.alert.identity import Identity
from millstream.alert.outbox import NewRows, Position

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

TEN_MINUTES = timedelta(minutes=10)


def entered(
    folder: Path, identity: Identity, batches: Sequence[Sequence[dict[str, Any]]]
) -> set[str]:
    deliveries = Deliveries(folder, epoch=1)
    for version, rows in enumerate(batches):
        news = NewRows(tuple(rows), Position("t", version), is_whole=False)
        deliveries.enter(identity, news, ["log"], now=0)
    ids = [delivery.notice.id for delivery in deliveries.listed()]
    deliveries.close()
    assert len(set(ids)) == len(ids)
    return set(ids)


def test_rows_that_are_alike_are_alerts_of_their_own_and_keep_their_numbers(tmp_path: Path) -> None:
    identity = Identity("shop", "unpicked", ("order",))

    once = entered(tmp_path / "a", identity, [[row("o1")]])
    thrice = entered(tmp_path / "b", identity, [[row("o1"), row("o1")], [row("o1")]])
    of_another = entered(tmp_path / "c", Identity("shop", "late", ("order",)), [[row("o1")]])

    assert len(thrice) == 3
    assert once < thrice
    assert once.isdisjoint(of_another)


def test_of_the_rows_in_one_window_of_the_cooldown_one_is_sent(tmp_path: Path) -> None:
    identity = Identity("shop", "unpicked", ("order",), TEN_MINUTES, "at")
    rows = [row("o1", "12:00:00"), row("o1", "12:09:59"), row("o2", "12:01:00"),
            row("o1", "12:10:00")]  # fmt: skip

    deliveries = Deliveries(tmp_path, epoch=1)
    deliveries.enter(
        identity, NewRows(tuple(rows), Position("t", 0), is_whole=False), ["log"], now=0
    )

    reported = [(d.notice.about, d.notice.event_time, d.repeats) for d in deliveries.listed()]
    assert reported == [
        ("order=o1", "2024-05-01T12:10:00+00:00", 0),
        ("order=o2", "2024-05-01T12:01:00+00:00", 0),
        ("order=o1", "2024-05-01T12:00:00+00:00", 1),
    ]
    deliveries.close()


def test_a_cooldown_goes_by_the_end_of_a_window_too() -> None:
    identity = Identity("shop", "busy", (), TEN_MINUTES, "window.end")
    rows = [{"window": {"start": None, "end": moment(f"12:{n}:00")}} for n in ("05", "09", "11")]
    nothing: dict[str, Any] = {"window": None}

    slots = [entry.slot for entry in identity.entries([*rows, nothing])]

    assert slots[0] == slots[1]
    assert slots[1] != slots[2]
    assert slots[3] is None


def test_numbers_that_json_does_not_have_are_sent_by_name_and_are_not_null() -> None:
    identity = Identity("shop", "odd", ("n",), TEN_MINUTES, "at")
    at = moment("12:00:00")
    values = [float("nan"), float("inf"), float("-inf"), None]

    entries = identity.entries([{"n": n, "at": at, "of": {"m": [n]}} for n in values])

    assert [entry.key for entry in entries] == [
        '{"n":"NaN"}',
        '{"n":"Infinity"}',
        '{"n":"-Infinity"}',
        '{"n":null}',
    ]
    assert '"of":{"m":["NaN"]}' in entries[0].row
    assert len({identity.id_of(entry, 1) for entry in entries}) == 4
    assert len({entry.content for entry in entries}) == 4


@settings(max_examples=10, deadline=None)
@given(data=st.data(), is_cooled=st.booleans())
def test_which_alerts_there_are_depends_on_the_rows_alone(
    data: st.DataObject, is_cooled: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    minutes = st.integers(0, 59).map(lambda minute: f"12:{minute:02d}:00")
    rows = data.draw(st.lists(st.builds(row, st.sampled_from("ab"), minutes), max_size=12))
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    cooldown = TEN_MINUTES if is_cooled else None
    identity = Identity("shop", "unpicked", ("order",), cooldown, "at")
    folder = tmp_path_factory.mktemp("home")

    in_one = entered(folder / "one", identity, [rows])
    in_two = entered(folder / "two", identity, [shuffled[:cut], shuffled[cut:]])

    assert in_one == in_two
    if not is_cooled:
        assert len(in_one) == len(rows)


def test_an_id_is_of_one_app_one_alert_and_one_content_in_any_order_of_columns() -> None:
    identities = [Identity(app, alert) for app in ("shop", "depot") for alert in ("late", "lost")]
    [one], [other] = (
        [*identities[0].entries([row])] for row in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )

    ids = {identity.id_of(entry, 1) for identity in identities for entry in (one, other)}

    assert one.content == other.content
    assert len(ids) == len(identities)


def test_a_time_without_a_zone_is_in_utc_wherever_the_driver_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    identity = Identity("shop", "late", ("order",), TEN_MINUTES, "at")
    naive = {"order": "o1", "at": moment("12:00:00").replace(tzinfo=None)}
    with monkeypatch.context() as abroad:
        abroad.setenv("TZ", "America/New_York")
        time.tzset()
        [entry] = identity.entries([naive])
    time.tzset()

    [known] = identity.entries([row("o1")])
    assert (entry.event_time, entry.slot) == (known.event_time, known.slot)
