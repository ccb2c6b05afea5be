"""Who may ask, and what: programs of this machine that know the token, and nothing but reads."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from millstream.console.answer import refusal
from millstream.errors import fault
from millstream.settings import TOKEN_VARIABLE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from millstream.errors import MillstreamError

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_READS = ("GET", "HEAD")
_GUARDED = "/api/"


class Guard:
    """Lets a request through to the console, or answers why not."""

    def __init__(self, inner: ASGIApp, *, token: str) -> None:
        self._inner, self._token = inner, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        refused = self._refused(scope)
        await (self._inner if refused is None else refusal(refused))(scope, receive, send)

    def _refused(self, scope: Scope) -> MillstreamError | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or name_of(hosts[0]) not in _LOOPBACK:
            return fault("CONSOLE_HOST", host=", ".join(hosts))
        if scope["method"] not in _READS:
            return fault("CONSOLE_READ_ONLY", method=scope["method"])
        if not scope["path"].startswith(_GUARDED):
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        # Starlette reads headers as Latin-1, whatever was sent.
        is_known = hmac.compare_digest(given.strip().encode("latin-1"), self._token)
        if kind.lower() == "bearer" and is_known:
            return None
        return fault(
            "CONSOLE_TOKEN",
            lack="another token than the console's" if given else "no token",
            variable=TOKEN_VARIABLE,
        )


def name_of(host: str) -> str:
    """Take the name of a Host header, without the port.

    >>> name_of("LOCALHOST:7400"), name_of("[::1]:7400"), name_of("127.0.0.1.example:80")
    ('localhost', '[::1]', '127.0.0.1.example')
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()
