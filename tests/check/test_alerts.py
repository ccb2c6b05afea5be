from __future__ import annotations

from typing import TYPE_CHECKING, Any

import millstream as ms
from millstream.bind import bind
from millstream.check import faults
from millstream.model.dataset import Alert
from millstream.plan import plan
from millstream.settings.profile import read_profile
from millstream.testing.standin import without_sinks
from millstream.views.graph import GraphView

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from millstream.errors import MillstreamError


def shop(**options: Any) -> ms.App:
    app = ms.App("shop")

    @app.source(event_time="at", watermark="1 minute")
    def orders() -> ms.Memory:
        return ms.Memory("id BIGINT, at TIMESTAMP")

    @app.alert(**{"to": ms.Log(), "key": "id", **options})
    def unpicked(orders: object) -> object:
        return orders

    @app.table()
    def again(unpicked: object) -> object:
        return unpicked

    return app


def codes(found: tuple[MillstreamError, ...]) -> list[str]:
    return [fault.code for fault in found]


def test_an_alert_is_a_table_that_others_may_read() -> None:
    app = shop(to=[ms.Webhook("https://ops.example/x"), ms.Kafka("alerts"), ms.Log()])

    assert app.faults == ()
    assert [(query.name, query.kind) for query in plan(app.graph)] == [
        ("orders", "landing"),
        ("unpicked", "stream"),
        ("again", "stream"),
    ]
    view = GraphView.of(app.graph)
    assert str(view.app) == "shop: 1 source, 1 table, 1 alert"
    assert str(view.datasets[1]) == (
        "alert · webhook, kafka, log · by id · at least once, each under one key"
    )


def test_what_is_wrong_with_an_alert_is_found_without_spark() -> None:
    assert codes(shop(cooldown="often").faults) == ["DURATION_REFUSED"]
    assert codes(shop(retry_for="never").faults) == ["DURATION_REFUSED"]
    assert codes(shop(to=[]).faults)[0] == "NOT_A_DESTINATION"
    assert codes(shop(to=[ms.SQLite("x.db")]).faults)[0] == "NOT_A_DESTINATION"
    assert codes(shop(too="x").faults)[0] == "UNKNOWN_OPTION"
    assert codes(faults(shop(trigger="realtime").graph)) == ["TRIGGER_TARGET"]


def test_a_proof_sends_nothing() -> None:
    [alert] = without_sinks(shop().graph).alerts

    assert alert.to == ()
    assert alert.key == ("id",)


def test_a_profile_sends_an_alert_to_someone_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPS_HOOK", "https://ops.example/h00k-99")
    (tmp_path / "millstream.toml").write_text(
        '[profile.prod.alert.unpicked]\nkind = "webhook"\nurl = "${OPS_HOOK}"\n'
        '[profile.mail.alert.unpicked]\nkind = "email"\nto = ["ann@example.org"]\n'
        '[profile.same.alert.unpicked]\npath = "other.jsonl"\n'
        '[profile.bad.alert.unpickt]\nkind = "log"\n'
    )
    app = shop()

    def bound(profile: str) -> tuple[Alert, list[str]]:
        made = bind(app.graph.declared, read_profile(tmp_path, profile))
        [alert] = [d for d in made.declared if isinstance(d, Alert)]
        return alert, [fault.what for fault in made.faults]

    alert, wrong = bound("prod")
    assert wrong == []
    assert alert.to == (ms.Webhook("https://ops.example/h00k-99"),)
    assert "h00k-99" not in repr(alert)
    assert "${OPS_HOOK}" in repr(alert)
    assert bound("same")[0].to == (ms.Log("other.jsonl"),)
    assert bound("mail")[1] == ["alert 'unpicked' has kind 'email' and no 'sender'"]
    assert bound("bad")[1] == ["alert 'unpickt' is bound, but the app does not declare it"]
