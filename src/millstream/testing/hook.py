"""A webhook for tests: a server on loopback that takes notices, or refuses them as it is told."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

_OK = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server is to say."""

    status: int = _OK
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    hangs: bool = False
    """Whether it is silent until the test is over."""
    drops: bool = False
    """Whether it takes the request and closes the line without an answer."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request."""

    path: str
    headers: Mapping[str, str]
    body: Any
    """What the JSON says."""

    @property
    def key(self) -> str:
        """By which the notice is known again."""
        return self.headers["Idempotency-Key"]


class Hook:
    """A server that answers with 200, unless replies were given to be used up first.

    >>> with Hook() as hook:
    ...     hook.received
    []
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.replies: deque[Reply] = deque()
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self, self._over))
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def keys(self) -> set[str]:
        """The keys of all notices that came, however often."""
        return {each.key for each in self.received}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


def _handler_of(hook: Hook, over: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            reply = hook.replies.popleft() if hook.replies else Reply()
            hook.received.append(Received(self.path, dict(self.headers), json.loads(body)))
            if reply.hangs:
                over.wait()
            if reply.hangs or reply.drops:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.text.encode())))
            self.end_headers()
            self.wfile.write(reply.text.encode())

        def log_message(self, *_: object) -> None:
            """Nothing: a test says what it has seen."""

    return Handler
