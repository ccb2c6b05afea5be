"""A webhook for tests: a server on loopback that accepts notices, or replies as a test says."""

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
    """What the server replies."""

    status: int = _OK
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    hangs: bool = False
    """Whether it sends nothing until the test is over."""
    drops: bool = False
    """Whether it reads the request and closes the connection without a reply."""


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: Any
    """The parsed JSON."""

    @property
    def key(self) -> str:
        """Identifies the notice."""
        return self.headers["Idempotency-Key"]


class Hook:
    """A server that replies with 200, after it has used up `replies`.

    >>> with Hook() as hook:
    ...     hook.received
    []
    """

    def __init__(self) -> None:
        self.received: list[WebhookRequest] = []
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
        """The keys of all notices that arrived, however often."""
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
            hook.received.append(WebhookRequest(self.path, dict(self.headers), json.loads(body)))
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
            """Log nothing: tests read `received`."""

    return Handler
