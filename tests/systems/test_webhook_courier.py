from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.alert.notices import AT, NOTICE

import millstream as ms
from millstream.alert.destination import NotSentError
from millstream.systems.webhook.request import is_public
from millstream.testing.hook import Hook, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
"""The bytes from 0 to 23, as the Standard Webhooks have a secret written."""


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as hook:
        yield hook


def reported(webhook: ms.Webhook, place: Path) -> NotSentError | None:
    try:
        webhook.courier(place).send(NOTICE)
    except NotSentError as refusal:
        return refusal
    return None


def test_a_notice_is_posted_as_json_under_its_key(hook: Hook, tmp_path: Path) -> None:
    webhook = ms.Webhook(f"{hook.address}/hook?token=s3cret", headers={"X-Team": "ops-1"})

    assert reported(webhook, tmp_path) is None

    [got] = hook.received
    assert got.path == "/hook?token=s3cret"
    assert got.key == NOTICE.id
    assert (got.headers["X-Team"], got.headers["Content-Type"]) == ("ops-1", "application/json")
    assert got.body == {
        "id": NOTICE.id,
        "app": "shop",
        "alert": "unpicked",
        "key": {"order": "o1"},
        "event_time": None,
        "row": {"order": "o1", "n": 1},
    }


@pytest.mark.parametrize("secret", [SECRET, SECRET.removeprefix("whsec_")])
def test_a_notice_is_signed_and_a_login_of_the_address_is_sent(
    hook: Hook, tmp_path: Path, secret: str
) -> None:
    address = hook.address.replace("://", "://ann:pa%2Fss@")

    assert reported(ms.Webhook(address, secret=secret), tmp_path) is None

    [got] = hook.received
    signed = f"{NOTICE.id}.{got.headers['webhook-timestamp']}.".encode() + NOTICE.body
    digest = hmac.new(bytes(range(24)), signed, hashlib.sha256).digest()
    assert got.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    assert got.headers["Authorization"] == f"Basic {base64.b64encode(b'ann:pa/ss').decode()}"


@pytest.mark.parametrize(
    ("reply", "again", "after", "why"),
    [
        (Reply(500, text="out of order"), True, None, "answered 500 Internal Server Error: out of"),
        (Reply(503, {"Retry-After": "120"}), True, timedelta(minutes=2), "answered 503"),
        (Reply(429, {"Retry-After": "soon"}), True, None, "answered 429"),
        (Reply(408), True, None, "answered 408"),
        (Reply(404, text="no such hook"), False, None, "answered 404 Not Found: no such hook"),
        (Reply(302, {"Location": "/other"}), False, None, "give the address that it leads to"),
        (Reply(308, {"Location": "ftp://example.org/"}), False, None, "from http: to ftp:"),
        (Reply(308, {"Location": "file:///etc/passwd"}), False, None, "from http: to file:"),
        (Reply(drops=True), True, None, "RemoteDisconnected"),
        (Reply(hangs=True), True, None, "no answer within 0.3 s"),
    ],
)
def test_what_an_answer_means(
    hook: Hook, tmp_path: Path, reply: Reply, again: bool, after: timedelta | None, why: str
) -> None:
    hook.replies.append(reply)
    timeout = "300 ms" if reply.hangs else "60 seconds"

    refusal = reported(ms.Webhook(hook.address, timeout=timeout), tmp_path)

    assert refusal is not None
    assert (refusal.again, refusal.after) == (again, after)
    assert why in str(refusal)


def test_a_server_that_drips_is_cut_off_in_time(tmp_path: Path) -> None:
    import socket
    import threading

    server = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        line, _ = server.accept()
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200:
            try:
                line.send(bytes([byte]))
            except OSError:
                break
            time.sleep(0.05)
        line.close()

    threading.Thread(target=drip, daemon=True).start()
    began = time.monotonic()

    refusal = reported(
        ms.Webhook(f"http://127.0.0.1:{server.getsockname()[1]}", timeout="300 ms"), tmp_path
    )

    server.close()
    assert refusal is not None
    assert "no answer within 0.3 s" in str(refusal)
    assert time.monotonic() - began < 8, "the whole answer takes eleven seconds"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.2",
        "[::ffff:127.0.0.1]",
        "localhost",
        "169.254.169.254",
        "224.0.0.1",
        "[64:ff9b::7f00:1]",
        "[2002:a9fe:a9fe::1]",
        "[fec0::1]",
    ],
)
def test_a_redirection_to_a_private_address_is_refused(
    hook: Hook, tmp_path: Path, host: str
) -> None:
    hook.replies.append(Reply(307, {"Location": f"http://{host}:9/latest/meta-data"}))

    refusal = reported(ms.Webhook(hook.address), tmp_path)

    assert refusal is not None
    assert not refusal.again
    assert "which is a private address" in str(refusal)


@pytest.mark.parametrize(
    ("address", "is_so"),
    [
        ("1.1.1.1", True),
        ("2606:4700::1111", True),
        ("64:ff9b::101:101", True),
        ("2002:101:101::", True),
        ("10.0.0.1", False),
        ("100.64.0.1", False),
        ("239.1.1.1", False),
        ("64:ff9b::a00:1", False),
        ("64:ff9b:1::101:101", False),
        ("2002:a00:1::", False),
        ("2001:0:a00:1::", False),
        ("::ffff:10.0.0.1", False),
        ("::10.0.0.1", False),
        ("fe80::1", False),
        ("fec0::1", False),
        ("ff0e::1", False),
    ],
)
def test_which_addresses_are_public(address: str, is_so: bool) -> None:
    assert is_public(address) == is_so


def test_a_redirection_that_is_allowed_takes_no_secrets_along(hook: Hook, tmp_path: Path) -> None:
    with Hook() as other:
        hook.replies.append(Reply(307, {"Location": "/again"}))
        hook.replies.append(Reply(308, {"Location": f"{other.address}/there"}))
        webhook = ms.Webhook(hook.address, headers={"X-Key": "k3y-1"}, allow_private=True)

        assert reported(webhook, tmp_path) is None

        assert [each.path for each in hook.received] == ["/", "/again"]
        assert all(each.headers["X-Key"] == "k3y-1" for each in hook.received)
        [there] = other.received
        assert there.path == "/there"
        assert there.key == NOTICE.id
        assert "X-Key" not in there.headers


def test_a_server_that_is_away_is_tried_again(tmp_path: Path) -> None:
    refusal = reported(ms.Webhook("http://127.0.0.1:9/x"), tmp_path)

    assert refusal is not None
    assert refusal.again
    assert str(refusal) == "127.0.0.1:9: Connection refused"


def test_secrets_of_a_webhook_are_not_shown() -> None:
    webhook = ms.Webhook(
        "https://ann:hunter22@hooks.example:8443/services/T00AB12CD/hook?token=abcd1234",
        headers={"Authorization": "Bearer b34r3r"},
        secret="whsec-2",
    )

    shown = repr(webhook)

    assert "https://hooks.example:8443/***" in shown
    for secret in ("hunter22", "T00AB12CD", "abcd1234", "b34r3r", "whsec-2"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("webhook", "option"),
    [
        (ms.Webhook("ftp://example.org"), "url"),
        (ms.Webhook("hooks.example/x"), "url"),
        (ms.Webhook("http://a:port/"), "url"),
        (ms.Webhook("https://a", headers={"X": "a\r\nY: b"}), "headers"),
        (ms.Webhook("https://a", headers={"X Y": "a"}), "headers"),
        (ms.Webhook("https://a", secret="open sesame"), "secret"),
        (ms.Webhook("https://a", secret="whsec_AAE"), "secret"),
        (ms.Webhook("https://a", timeout="soon"), "timeout"),
        (ms.Webhook("https://a", timeout="0s"), "timeout"),
    ],
)
def test_what_is_wrong_with_a_webhook_is_found_without_the_network(
    webhook: ms.Webhook, option: str
) -> None:
    [fault] = webhook.alert_faults("unpicked", AT)

    assert f"with {option}=" in str(fault)
    assert "sesame" not in str(fault)


def test_a_secret_that_signs_nothing_is_not_left_out(hook: Hook, tmp_path: Path) -> None:
    refusal = reported(ms.Webhook(hook.address, secret="open sesame"), tmp_path)

    assert str(refusal) == "the secret is not base64"
    assert hook.received == []


def test_a_log_has_a_line_for_each_notice(tmp_path: Path) -> None:
    courier = ms.Log().courier(tmp_path / "logs")

    courier.send(NOTICE)
    courier.send(NOTICE)

    lines: list[Any] = (tmp_path / "logs" / "alerts.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [NOTICE.id] * 2
    with pytest.raises(NotSentError, match="Is a directory"):
        ms.Log(str(tmp_path)).courier(tmp_path).send(NOTICE)
