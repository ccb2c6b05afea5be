"""Who may ask the console, and what."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from tests.console.conftest import TOKEN, app_of, served

from millstream.console import guard, patience
from millstream.systems.sqlite.settings import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.console.conftest import Client

    from millstream.console.server import ConsoleServer

    Ask = Callable[..., Client]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    folder = tmp_path_factory.mktemp("fleet")
    with served(app_of(latest=SQLite(str(folder / "fleet.db"), key="id"))) as console:
        yield console


@pytest.mark.parametrize("path", ["/api/served", "/api/get/latest?id=1", "/api/none"])
@pytest.mark.parametrize("token", [None, "", TOKEN[:-1], f"{TOKEN}x", "é"])
def test_who_does_not_know_the_token_is_told_nothing_but_that(
    console: ConsoleServer, ask: Ask, path: str, token: str | None
) -> None:
    told = ask(console, token).ask(path)

    assert told.status == 401
    assert told.headers["www-authenticate"] == "Bearer"
    assert told.json["code"] == "CONSOLE_TOKEN"
    assert told.json["what"] == (
        "the request has another token than the console's" if token else "the request has no token"
    )
    assert TOKEN not in told.body.decode()


@pytest.mark.parametrize("header", [f"bearer {TOKEN}", f"BEARER  {TOKEN}"])
def test_the_scheme_of_the_token_has_no_case(console: ConsoleServer, ask: Ask, header: str) -> None:
    assert ask(console, None).ask("/api/served", Authorization=header).status == 200


@pytest.mark.parametrize("header", [TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN} {TOKEN}"])
def test_a_token_in_another_scheme_is_none(console: ConsoleServer, ask: Ask, header: str) -> None:
    assert ask(console, None).ask("/api/served", Authorization=header).status == 401


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LocalHost", "[::1]:7400"])
def test_loopback_has_several_names_and_any_port(
    console: ConsoleServer, ask: Ask, host: str
) -> None:
    assert ask(console).ask("/api/served", Host=host).status == 200


@pytest.mark.parametrize(
    "host", ["rebound.example", "127.0.0.1.example:7400", "localhost.example", "0.0.0.0", ""]
)
@pytest.mark.parametrize("path", ["/api/served", "/"])
def test_a_name_that_was_made_to_lead_here_is_refused(
    console: ConsoleServer, ask: Ask, host: str, path: str
) -> None:
    told = ask(console).ask(path, Host=host)

    assert told.status == 403
    assert told.json["code"] == "CONSOLE_HOST"
    assert told.json["what"].startswith(f"the request is for the host {host!r}")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_what_only_shows_answers_no_other_method(
    console: ConsoleServer, ask: Ask, method: str
) -> None:
    told = ask(console).ask("/api/served", method, **{"Content-Type": "application/json"})

    assert told.status == 405
    assert {*told.headers["allow"].split(", ")} == {"GET", "HEAD"}
    assert told.json["code"] == "CONSOLE_READ_ONLY"


def test_head_says_what_get_would_without_the_body(console: ConsoleServer, ask: Ask) -> None:
    client = ask(console)

    head, get = client.ask("/api/served", "HEAD"), client.ask("/api/served")

    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(get.body))
    assert head.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/none", "/api/serve", "/api/served/", "/docs", "/openapi.json", "/static/../guard.py"]
)
def test_an_address_that_is_not_there_is_told_with_those_that_are(
    console: ConsoleServer, ask: Ask, path: str
) -> None:
    told = ask(console).ask(path)

    assert told.status == 404
    assert told.json["code"] == "CONSOLE_ADDRESS"
    assert "/api/served, /api/get/NAME?COLUMN=VALUE" in told.json["fix"]


def test_a_cookie_stands_for_the_token_after_the_first_load(
    console: ConsoleServer, ask: Ask
) -> None:
    signed = ask(console).ask("/api/session", "POST")
    cookie, *options = signed.headers["set-cookie"].split("; ")

    assert signed.json == {"role": "operate"}
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {*options}
    assert TOKEN not in cookie
    assert ask(console, None).ask("/api/served", Cookie=cookie).status == 200
    assert ask(console, None).ask("/api/served", Cookie=cookie[:-1]).status == 401
    assert ask(console, None).ask("/api/served", Cookie=cookie.replace("=", "0=")).status == 401


def test_a_link_for_looking_shows_everything_and_changes_nothing(
    console: ConsoleServer, ask: Ask
) -> None:
    client = ask(console, console.keys.look)
    cookie = client.ask("/api/session", "POST").headers["set-cookie"].partition(";")[0]
    json = {"Content-Type": "application/json"}

    shown = client.ask("/api/served")
    acted = [client.ask(f"/api/alerts/{act}", "POST", **json) for act in ("retry", "silence")]
    by_cookie = ask(console, None).ask("/api/alerts/retry", "POST", **json, Cookie=cookie)

    assert shown.status == 200
    assert {told.json["code"] for told in (*acted, by_cookie)} == {"CONSOLE_ROLE"}
    assert {told.status for told in (*acted, by_cookie)} == {403}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://shop.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none", "Origin": "http://localhost.example"},
    ],
)
@pytest.mark.parametrize(
    ("path", "method"),
    [("/api/served", "GET"), ("/api/session", "POST"), ("/api/alerts/retry", "POST")],
)
def test_pages_of_other_sites_are_refused_even_with_the_token(
    console: ConsoleServer, ask: Ask, headers: dict[str, str], path: str, method: str
) -> None:
    told = ask(console).ask(path, method, **headers, **{"Content-Type": "application/json"})

    assert (told.status, told.json["code"]) == (403, "CONSOLE_ORIGIN")


def test_its_own_page_is_answered(console: ConsoleServer, ask: Ask) -> None:
    own = {"Origin": console.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}

    assert ask(console).ask("/api/served", **own).status == 200


@pytest.mark.parametrize("path", ["/", "/sql", "/static/main.js", "/api/served", "/none"])
def test_every_answer_forbids_inline_scripts_frames_and_other_hosts(
    console: ConsoleServer, ask: Ask, path: str
) -> None:
    headers = ask(console).ask(path).headers

    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (b"{}", "text/plain", "its content type is text/plain"),
        (b"sql=1", "application/x-www-form-urlencoded", "its content type is application/x-www"),
        (b"[1]", "application/json", "it is not a JSON object"),
        (b"{", "application/json", "it is not a JSON object"),
        (b"[" * 100_000, "application/json", "it is not a JSON object"),
        (b'{"sql": 1}', "application/json", "'sql' is not a str"),
        (b'{"sql": "SELECT 1", "most": true}', "application/json", "'most' is not a int"),
        (b"{" + b" " * 300_000, "application/json", "it has more than 262144 bytes"),
    ],
)
def test_a_body_that_is_not_what_the_page_sends_is_refused(
    console: ConsoleServer, ask: Ask, body: bytes, kind: str, why: str
) -> None:
    told = ask(console).send("/api/sql", body, kind)

    assert (told.status, told.json["code"]) == (400, "CONSOLE_BODY")
    assert told.json["what"].startswith(f"the request is not read: {why}")


def test_a_body_of_unknown_length_is_cut_off(console: ConsoleServer, ask: Ask) -> None:
    told = ask(console).send("/api/sql", iter([b"{" + b" " * 100_000] * 4), "application/json")

    assert (told.status, told.json["code"]) == (400, "CONSOLE_BODY")


def test_a_body_that_does_not_come_is_not_waited_for(
    console: ConsoleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_BODY_WITHIN_S", 0.2)
    head = (
        f"POST /api/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", console.port), timeout=10) as line:
        line.sendall(head.encode())
        answer = line.recv(65536)

    assert b"400 Bad Request" in answer


def test_a_connection_that_asks_nothing_is_closed_and_others_are_answered(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_REQUEST_WITHIN_S", 0.5)
    app = app_of(latest=SQLite(str(tmp_path / "fleet.db"), key="id"))
    with served(app) as console:
        lines = [socket.create_connection(("127.0.0.1", console.port), 10) for _ in range(60)]
        for line in lines:
            line.sendall(b"GET /api/served HTTP/1.1\r\nHost: 127")
        meanwhile = ask(console).ask("/api/served").status
        ends = {line.recv(1) for line in lines}
        for line in lines:
            line.close()

    assert meanwhile == 200
    assert ends == {b""}


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../..",
        "../../etc/passwd",
        "/etc",
        "a\x00b",
        "latest/../..",
        "%2e%2e",
        "é",
        "x" * 3000,
    ],
)
@pytest.mark.parametrize("what", ["", "/why", "/code", "/batches", "/rows", "/aside", "/history"])
def test_a_name_never_becomes_a_path(
    console: ConsoleServer, ask: Ask, name: str, what: str
) -> None:
    told = ask(console).ask(f"/api/dataset/{quote(name, safe='')}{what}")

    assert told.status == 404
    assert told.json["code"] in {"UNKNOWN_DATASET", "CONSOLE_ADDRESS"}
