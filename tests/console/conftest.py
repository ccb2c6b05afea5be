"""Consoles that really listen, and clients that really ask."""

from __future__ import annotations

import http.client
import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import pytest
from tests.systems.stores import OPENED

import millstream as ms
from millstream.console.deployment import Deployment
from millstream.console.server import ConsoleServer
from millstream.lake.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TOKEN = "a-token-for-tests"


@dataclass(frozen=True, slots=True)
class Told:
    """An answer over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One connection to a console, kept open from request to request."""

    def __init__(self, url: str, token: str | None = TOKEN) -> None:
        self._line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, path: str, method: str = "GET", **headers: str) -> Told:
        self._line.request(method, path, headers={**self._headers, **headers})
        answer = self._line.getresponse()
        return Told(answer.status, dict(answer.getheaders()), answer.read())

    def send(self, path: str, body: bytes | Iterator[bytes], kind: str) -> Told:
        """Post a body as it is."""
        headers = {**self._headers, "Content-Type": kind}
        with suppress(BrokenPipeError, ConnectionResetError):
            # A server that has refused a long body closes the connection while it is sent.
            self._line.request("POST", path, body, headers)
        answer = self._line.getresponse()
        return Told(answer.status, dict(answer.getheaders()), answer.read())

    def post(self, path: str, **body: Any) -> Told:
        return self.send(path, json.dumps(body).encode(), "application/json")

    def get(self, dataset: str, **key: Any) -> Told:
        return self.ask(f"/api/get/{dataset}?{urlencode(key)}")

    def close(self) -> None:
        self._line.close()


def app_of(**to: Any) -> ms.App:
    """Declare an app that serves answers to stores."""
    app = ms.App("fleet")

    def positions() -> ms.Memory:
        return ms.Memory("id BIGINT, text STRING")

    app.source()(positions)
    for name, sink in to.items():
        app.serve(to=sink, mode="update", name=name)(lambda positions: positions)
    return app


@contextmanager
def served(app: ms.App, write_trace: Callable[[Exception], str] = str) -> Iterator[ConsoleServer]:
    """Serve an app from a thread; nothing has run in its home."""
    home = Home.at(Path(gettempdir()) / "nothing-has-run-here")
    with served_home(app, home, write_trace) as console:
        yield console


@contextmanager
def served_home(
    app: ms.App, home: Home, write_trace: Callable[[Exception], str] = str
) -> Iterator[ConsoleServer]:
    """Serve an app as it is deployed in a home, from a thread."""
    shown = Deployment(name=app.name, home=home, graph=app.graph)
    console = ConsoleServer(shown, port=0, token=TOKEN, write_trace=write_trace)
    thread = threading.Thread(target=console.serve)
    thread.start()
    try:
        yield console
    finally:
        console.stop()
        thread.join()


@pytest.fixture
def ask() -> Iterator[Callable[..., Client]]:
    """Give the function that connects to a console."""
    made: list[Client] = []

    def connect(console: ConsoleServer, token: str | None = TOKEN) -> Client:
        made.append(Client(console.url, token))
        return made[-1]

    yield connect
    for client in made:
        client.close()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()
