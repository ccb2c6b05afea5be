"""Secrets that must not be found in any byte that is written or printed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from tests.faults import raises

import millstream as ms
from millstream.cli.interrupt import Interrupts
from millstream.cli.program import run_command
from millstream.errors import Location
from millstream.loading import load
from millstream.testing.hook import Hook, Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from millstream.observe import Event
    from millstream.testing.postgres import PostgresServer

CANARIES = ("path-C4N4RY/0001", "query-C4N4RY-2", "bearer C4N4RY-3", "signsC4N4RY4")
APP = """\
import millstream as ms

app = ms.App("canary")
hook = ms.Webhook(
    {url!r}, headers={{"Authorization": {bearer!r}}}, secret={secret!r}, timeout="5 seconds"
)


@app.source(event_time="at", watermark="1 minute")
def orders():
    return ms.Files({folder!r}, format="json", schema="id BIGINT, at TIMESTAMP")


@app.alert(to=[hook, ms.Log()], key=["id"])
def seen(orders):
    return orders


@app.serve(to=ms.Postgres({dsn!r}, table="canary", key="id"))
def kept(orders):
    return orders
"""
COMMANDS = (
    ["check", "--static"], ["graph"], ["graph", "--format", "svg"], ["status"], ["show", "seen"],
    ["show", "kept"], ["settings"], ["ledger"], ["alerts"], ["alerts", "--json"], ["doctor"],
    ["graph", "--format", "json"], ["settings", "--json"], ["show", "kept", "--json"],
)  # fmt: skip


def written(secret: str) -> Iterator[bytes]:
    """A secret as it may be written."""
    for text in (secret, quote(secret), quote(secret, safe="")):
        yield text.encode()
        yield base64.b64encode(text.encode()).rstrip(b"=")[:-1]


def leaks(secrets: Iterable[str], reported: dict[str, bytes]) -> list[str]:
    return [
        f"{secret} in {where}"
        for secret in secrets
        for where, text in reported.items()
        if any(form in text for form in written(secret))
    ]


def files_of(*folders: Path) -> dict[str, bytes]:
    found = (file for folder in folders for file in folder.rglob("*") if file.is_file())
    return {str(file): file.read_bytes() for file in found}


@pytest.mark.services
def test_no_secret_is_in_any_file_of_the_home_nor_in_anything_that_is_printed(
    spark: SparkSession,
    postgres: PostgresServer,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path, query, bearer, secret = CANARIES
    (tmp_path / "in").mkdir()
    rows = [{"id": n, "at": f"2024-05-01T12:00:0{n}Z"} for n in range(2)]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    events: list[Event] = []
    with Hook() as hook:
        hook.replies.append(
            Reply(404, text=f"POST /{path}?token={query} by {bearer}: no such hook")
        )
        Path("app.py").write_text(
            APP.format(
                url=f"{hook.address}/{path}?token={query}",
                bearer=bearer,
                secret=secret,
                folder=str(tmp_path / "in"),
                dsn=postgres.dsn,
            )
        )
        app = load("app.py")
        running = app.open({"once": True}, on_event=events.append)
        running.serve()
        running.raise_if_stopped_for_good()
        for command in COMMANDS:
            run_command([*command, *([] if "show" in command else ["app.py"])], Interrupts())
    received = [each.headers["Authorization"] for each in hook.received]
    wrong = ms.Postgres(postgres.address(postgres.port, password="wrong-C4N4RY-5"))
    with raises("STORE_LOGIN") as refused:
        wrong.reach_sink(spark, "kept", Location("app.py", 1))

    secrets = (*CANARIES, postgres.password, "wrong-C4N4RY-5")
    printed = {
        "output": "".join(capfd.readouterr()).encode(),
        "events": repr(events).encode(),
        "error": f"{refused.value}{refused.value!r}".encode(),
        "declarations": f"{app.graph}{app!r}".encode(),
    }
    stored = files_of(app.home().path, *tmp_path_factory.getbasetemp().glob("logs*"))
    assert received == [bearer, bearer]
    assert [event.kind for event in events if event.kind.startswith("alert")] == ["alert_dead"]
    assert "answered 404 Not Found: POST ***?token=*** by ***: no such hook" in repr(events)
    assert b"seen: alert" in printed["output"]
    assert len(stored) > 20
    assert leaks(secrets, stored | printed) == []
    in_app = {name: text for name, text in files_of(tmp_path).items() if name.endswith("app.py")}
    assert len(leaks((*CANARIES, postgres.password), in_app)) == 5
