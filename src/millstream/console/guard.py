"""Which requests are answered: of this machine, of this page, of a visitor who may ask this."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from millstream.console.key import Role
from millstream.console.response import error_response
from millstream.errors import fault
from millstream.settings import TOKEN_VARIABLE
from millstream.systems.http.authority import LOOPBACK, name_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from millstream.console.key import AccessKeys
    from millstream.errors import MillstreamError

_READS = ("GET", "HEAD")
_GUARDED = ("/api/", "/metrics")
_SIGN_IN = "/api/session"
_ASKED_BY_POST = (_SIGN_IN, "/api/sql", "/api/sql/file", "/api/sql/cancel", "/api/state")
"""Posts that change nothing: visitors who may only look send them too."""
_OWN_SITE = ("same-origin", "none")
_LONGEST_BODY = 256 * 1024
_BODY_WITHIN_S = 10.0
_POLICY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Lets a request through to the console, or answers why not."""

    def __init__(self, inner: ASGIApp, *, keys: AccessKeys) -> None:
        self._inner, self._keys = inner, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope.setdefault("state", {})
        refused = self._refused(scope)
        asked = self._inner if refused is None else error_response(refused)
        await asked(scope, _bounded(receive), _with_policy(send))

    def _refused(self, scope: Scope) -> MillstreamError | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or name_of(hosts[0]) not in LOOPBACK:
            return fault("CONSOLE_HOST", host=", ".join(hosts))
        if not scope["path"].startswith(_GUARDED):
            return None
        if foreign := _foreign_page(headers, hosts[0]):
            return fault("CONSOLE_ORIGIN", origin=foreign)
        role = self._role(headers)
        if role is None:
            sent = headers.get("authorization", "").partition(" ")[2]
            lack = "another token than the console's" if sent else "no token"
            return fault("CONSOLE_TOKEN", lack=lack, variable=TOKEN_VARIABLE)
        scope["state"]["role"] = role
        return _refused_to(role, scope, headers)

    def _role(self, headers: Headers) -> Role | None:
        if authorization := headers.get("authorization"):
            kind, _, sent = authorization.partition(" ")
            return self._keys.role_of_token(sent.strip()) if kind.lower() == "bearer" else None
        return self._keys.role_of_cookies(headers.get("cookie", ""))


def _foreign_page(headers: Headers, host: str) -> str | None:
    """Return the page of another site that had a browser send this request, if one had."""
    site = headers.get("sec-fetch-site")
    if site is not None and site not in _OWN_SITE:
        return headers.get("origin", site)
    origin = headers.get("origin")
    return origin if origin is not None and origin.lower() != f"http://{host.lower()}" else None


def _refused_to(role: Role, scope: Scope, headers: Headers) -> MillstreamError | None:
    method, path = scope["method"], scope["path"]
    if method in _READS:
        return None
    if method == "POST" and role is not Role.OPERATE and path not in _ASKED_BY_POST:
        return fault("CONSOLE_ROLE", path=path)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "POST" and path != _SIGN_IN and kind != "application/json":
        return fault("CONSOLE_BODY", why=f"its content type is {kind or 'missing'}")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > _LONGEST_BODY:
        return fault("CONSOLE_BODY", why=f"it has more than {_LONGEST_BODY} bytes")
    return None


def _bounded(receive: Receive) -> Receive:
    """Give up on a body that is too long, or that does not come."""
    taken, is_whole = 0, False

    async def receive_some() -> Message:
        nonlocal taken, is_whole
        if is_whole:
            # What comes after the body is that the visitor leaves, which may be much later.
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), _BODY_WITHIN_S)
        except TimeoutError:
            raise fault("CONSOLE_BODY", why=f"it takes over {_BODY_WITHIN_S:g} seconds") from None
        taken += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if taken > _LONGEST_BODY:
            raise fault("CONSOLE_BODY", why=f"it has more than {_LONGEST_BODY} bytes")
        return message

    return receive_some


def _with_policy(send: Send) -> Send:
    async def send_some(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_POLICY)
        await send(message)

    return send_some
