"""Who may ask the console, and what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.console.conftest import TOKEN, app_of, served

from millstream.systems.sqlite.settings import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.console.conftest import Client

    from millstream.console.server import Console

    Ask = Callable[..., Client]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with served(app_of(latest=SQLite(str(tmp_path / "fleet.db"), key="id"))) as console:
        yield console


@pytest.mark.parametrize("path", ["/api/served", "/api/get/latest?id=1", "/api/none"])
@pytest.mark.parametrize("token", [None, "", TOKEN[:-1], f"{TOKEN}x", "é"])
def test_who_does_not_know_the_token_is_told_nothing_but_that(
    console: Console, ask: Ask, path: str, token: str | None
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
def test_the_scheme_of_the_token_has_no_case(console: Console, ask: Ask, header: str) -> None:
    assert ask(console, None).ask("/api/served", Authorization=header).status == 200


@pytest.mark.parametrize("header", [TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN} {TOKEN}"])
def test_a_token_in_another_scheme_is_none(console: Console, ask: Ask, header: str) -> None:
    assert ask(console, None).ask("/api/served", Authorization=header).status == 401


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LocalHost", "[::1]:7400"])
def test_loopback_has_several_names_and_any_port(console: Console, ask: Ask, host: str) -> None:
    assert ask(console).ask("/api/served", Host=host).status == 200


@pytest.mark.parametrize(
    "host", ["rebound.example", "127.0.0.1.example:7400", "localhost.example", "0.0.0.0", ""]
)
@pytest.mark.parametrize("path", ["/api/served", "/"])
def test_a_name_that_was_made_to_lead_here_is_refused(
    console: Console, ask: Ask, host: str, path: str
) -> None:
    told = ask(console).ask(path, Host=host)

    assert told.status == 403
    assert told.json["code"] == "CONSOLE_HOST"
    assert told.json["what"].startswith(f"the request is for the host {host!r}")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_is_changed(console: Console, ask: Ask, method: str) -> None:
    told = ask(console).ask("/api/served", method)

    assert told.status == 405
    assert told.headers["allow"] == "GET, HEAD"
    assert told.json["code"] == "CONSOLE_READ_ONLY"


def test_head_says_what_get_would_without_the_body(console: Console, ask: Ask) -> None:
    client = ask(console)

    head, get = client.ask("/api/served", "HEAD"), client.ask("/api/served")

    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(get.body))
    assert head.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/api/serve", "/api/served/", "/docs", "/openapi.json"])
def test_an_address_that_is_not_there_is_told_with_those_that_are(
    console: Console, ask: Ask, path: str
) -> None:
    told = ask(console).ask(path)

    assert told.status == 404
    assert told.json["code"] == "CONSOLE_ADDRESS"
    assert "/api/served, /api/get/NAME?COLUMN=VALUE" in told.json["fix"]
