"""Records posted over HTTP to a receiver in the driver."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.errors import InboxClosedError, fault
from millstream.systems.record import Received

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location
    from millstream.landing.inbox import Inbox

_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Http(Received):
    """Records that others post to this machine: a JSON object, an array of them, or lines.

    `200` says that the records are landed, whatever their verdicts. Any other answer, or none,
    means that they may not be: post them again. It listens on loopback unless told otherwise.
    """

    port: int
    host: str = "127.0.0.1"
    path: str = "/"
    format: str = "json"
    schema: str | StructType = "value STRING"

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:  # noqa: ARG002
        """Try the port.

        Raises:
            PORT_TAKEN: Something else listens there.
        """
        try:
            ThreadingHTTPServer((self.host, self.port), BaseHTTPRequestHandler).server_close()
        except OSError as error:
            address = f"{self.host}:{self.port}"
            listener = f"source {source!r}"
            raise fault(
                "PORT_TAKEN", at=at, listener=listener, address=address, why=str(error)
            ) from error

    def receive(self, inbox: Inbox) -> None:
        """Answer posts until the app stops."""
        server = _Server((self.host, self.port), self.path, inbox)
        serving = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        serving.start()
        try:
            while not inbox.is_closed:
                inbox.wait(60)
        finally:
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], path: str, inbox: Inbox) -> None:
        self.path, self.inbox = path, inbox
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        if self.path.partition("?")[0] != self.server.path:
            self._answer(HTTPStatus.NOT_FOUND, error=f"post to {self.server.path}")
            return
        try:
            records = _records(self._body(), self.headers.get_content_type())
            self.server.inbox.put(*records)
        except ValueError as error:
            self._answer(HTTPStatus.BAD_REQUEST, error=str(error))
        except InboxClosedError:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, error="the app stops: post again")
        else:
            self._answer(HTTPStatus.OK, landed=len(records))

    def _body(self) -> bytes:
        told = self.headers.get("Content-Length", "")
        if told.isdecimal() and int(told) <= _MOST_BYTES:
            return self.rfile.read(int(told))
        # What follows cannot be told from the next request.
        self.close_connection = True
        reason = f"Content-Length is {told!r}: post up to {_MOST_BYTES} bytes at once"
        raise ValueError(reason)

    def _answer(self, status: HTTPStatus, **told: Any) -> None:
        body = json.dumps(told).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet: a run has its own way to tell."""


def _records(body: bytes, kind: str) -> Sequence[bytes]:
    r"""Cut a body into records; each is kept as it was sent, on one line.

    >>> _records(b'[{"n": 1},\n {"n": 2}]', "application/json")
    [b'{"n":1}', b'{"n":2}']
    >>> _records(b"one\ntwo\n", "text/plain")
    [b'one', b'two']
    """
    if kind != "application/json":
        return [line for line in body.splitlines() if line]
    try:
        is_array = body.lstrip()[:1] == b"["
        parts = msgspec.json.decode(body, type=list[msgspec.Raw]) if is_array else [body]
        return [msgspec.json.format(bytes(part), indent=-1) for part in parts]
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
