from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.alert.deliveries import Deliveries
from millstream.alert.identity import Identity
from millstream.alert.outbox import NewRows, Position
from millstream.lake.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

SHOP = """\
import millstream as ms
app = ms.App("shop")
@app.source()
def orders(): return ms.Memory("id BIGINT, zone STRING")
@app.alert(to=[ms.Webhook("https://ops.example/s3cr3t-hook"), ms.Log()], key=["id"])
def unpicked(orders): return orders
"""
ROWS = ({"id": 7, "zone": "a"}, {"id": 8, "zone": "b"})


@pytest.fixture
def alerts(millstream: Callable[..., Outcome], tmp_path: Path) -> Deliveries:
    """Two rows: one was delivered, the other is dead at the webhook and waits for the log."""
    Path("app.py").write_text(SHOP)
    home = Home.at(tmp_path / ".millstream" / "shop")
    home.prepare("shop", sources=["orders"])
    deliveries = Deliveries(home.alerts, epoch=1)
    identity = Identity("shop", "unpicked", ("id",))
    news = NewRows(ROWS, Position("t", 0), is_whole=False)
    deliveries.enter(identity, news, ["webhook", "log"], now=0)
    for destination, state, facts in (
        ("webhook", "delivered", {"attempts": 1, "done_at": 5.0}),
        ("log", "delivered", {"attempts": 1, "done_at": 5.0}),
        ("webhook", "dead", {"attempts": 1, "reason": "answered 404 Not Found"}),
        ("log", "pending", {"attempts": 2, "reason": "disk full", "next_at": 60.0}),
    ):
        due = deliveries.due("unpicked", destination, now=1)
        assert due is not None
        deliveries.note(due, destination, state, **facts)
    return deliveries


def test_alerts_are_listed_with_their_destination_and_why_they_failed(
    millstream: Callable[..., Outcome], alerts: Deliveries
) -> None:
    outcome = millstream("alerts", "app.py")

    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[0] == ["id", "alert", "about", "destination", "state", "tries"]
    listed = [line[1:] for line in lines[1:] if line]
    assert listed[0][:5] == ["unpicked", "id=8", "log", "pending", "2"]
    assert listed[0][5:] == ["disk", "full;", "again", "at", "1970-01-01", "00:01"]
    assert listed[1][:5] == ["unpicked", "id=8", "webhook", "dead", "1"]
    assert listed[3][:5] == ["unpicked", "id=7", "webhook", "delivered", "1"]
    assert outcome.out.endswith("  1 pending · 2 delivered · 1 dead · 0 silenced\n")
    assert "s3cr3t" not in outcome.out


def test_json_lists_every_alert_and_the_terminal_says_how_many_it_left_out(
    millstream: Callable[..., Outcome], alerts: Deliveries
) -> None:
    more = NewRows(
        tuple({"id": n, "zone": "c"} for n in range(100, 130)), Position("t", 1), is_whole=False
    )
    alerts.enter(Identity("shop", "unpicked", ("id",)), more, ["webhook", "log"], now=0)

    found = json.loads(millstream("alerts", "--json").out)
    shown = millstream("alerts").out

    assert (len(found["deliveries"]), found["left_out"]) == (64, 0)
    assert "  … and 44 more; --limit shows them\n" in shown


def test_alerts_are_listed_by_state_and_as_json(
    millstream: Callable[..., Outcome], alerts: Deliveries
) -> None:
    outcome = millstream("alerts", "--state", "dead", "--json")

    found = json.loads(outcome.out)
    assert found["counts"] == {"pending": 1, "delivered": 2, "dead": 1, "silenced": 0}
    [dead] = found["deliveries"]
    assert dead["row"] == {"id": 8, "zone": "b"}
    assert dead["key"] == {"id": 8}
    assert dead["reason"] == "answered 404 Not Found"
    assert len(dead["id"]) == 32


def test_what_is_dead_is_tried_again(
    millstream: Callable[..., Outcome], alerts: Deliveries
) -> None:
    [dead] = alerts.listed(state="dead")

    one = millstream("alerts", "retry", "app.py", "--id", dead.notice.id[:8])
    again = json.loads(millstream("alerts", "retry", "--alert", "unpicked", "--json").out)

    assert one.out == "  ✓ 2 notices will be sent again\n"
    assert again["notices"] == 2
    assert alerts.counts() == {"pending": 2, "delivered": 2, "dead": 0, "silenced": 0}


def test_a_silence_is_kept_and_listed_until_it_is_ended(
    millstream: Callable[..., Outcome], alerts: Deliveries
) -> None:
    said = millstream(
        "alerts", "silence", "app.py", "--alert", "unpicked", "--key", "id=8", "--for", "2 hours"
    )

    [silence] = alerts.silences(time.time())
    [waits] = [d.notice for d in alerts.listed(state="pending")]
    assert silence.covers(waits)
    assert 7100 < silence.until - time.time() <= 7200
    assert said.out.startswith("  ✓ unpicked about id=8 is silenced until ")
    assert "unpicked about id=8 is silenced until" in millstream("alerts").out
    ended = millstream("alerts", "silence", "--alert", "unpicked", "--key", "id=8", "--for", "0s")
    assert ended.out == "  ✓ alerts are sent again\n"
    assert alerts.silences(time.time()) == []


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--state", "lost"], "[ARGUMENT_REFUSED] --state cannot be 'lost'"),
        (["--alert", "unpickt"], "[UNKNOWN_ALERT] there is no alert 'unpickt'"),
        (["retry", "--id", "zz"], "[UNKNOWN_NOTICE]"),
        (["silence", "--for", "ever"], "[ARGUMENT_REFUSED] --for cannot be 'ever'"),
        (["silence", "--for", "1h", "--key", "id"], "[ARGUMENT_REFUSED] --key cannot be 'id'"),
        (
            ["silence", "--for", "1h", "--key", "idd=8"],
            "[ARGUMENT_REFUSED] --key cannot be 'idd=8'\n"
            "  fix: give id=8; columns of the key are id\n",
        ),
        (
            ["silence", "--for", "1h", "--alert", "unpicked", "--key", "zone=a"],
            "[ARGUMENT_REFUSED] --key cannot be 'zone=a'\n"
            "  fix: give a column of the key; columns of the key are id\n",
        ),
        (["silence"], "[USAGE]"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    millstream: Callable[..., Outcome], alerts: Deliveries, words: list[str], refusal: str
) -> None:
    outcome = millstream("alerts", *words)

    assert outcome.code == 2
    assert outcome.err.startswith(refusal)


def test_an_app_that_never_ran_has_no_alerts(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").write_text(SHOP)

    outcome = millstream("alerts")

    assert outcome.out == "  0 pending · 0 delivered · 0 dead · 0 silenced\n"
    assert millstream("alerts", "retry").out == "  ✓ 0 notices will be sent again\n"


def test_notices_of_objectives_are_listed_and_silenced_like_those_of_an_alert(
    millstream: Callable[..., Outcome], alerts: Deliveries
) -> None:
    Path("app.py").write_text(SHOP.replace('"shop"', '"shop", notify=ms.Log()'))
    key = ("--key", "dataset=orders")

    listed = millstream("alerts", "--alert", "__objectives")
    silenced = millstream("alerts", "silence", "--alert", "__objectives", *key, "--for", "1 hour")
    refused = millstream("alerts", "silence", "--alert", "unpicked", *key, "--for", "1 hour")

    assert (listed.code, silenced.code, refused.code) == (0, 0, 2)
    assert [silence.key for silence in alerts.silences(time.time())] == [{"dataset": "orders"}]
