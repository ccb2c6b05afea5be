"""One post: checked, read to its end, and split into records."""

from __future__ import annotations

import asyncio
import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.settings.secret import revealed
from millstream.systems.http.authority import LOOPBACK, bears, is_foreign, name_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from millstream.systems.http.source import Http

    Receive = Callable[[], Awaitable[Mapping[str, Any]]]

_DISCARDED = 64 << 20
"""How much of a refused body is read: to a client that cannot send it, no answer arrives."""
_JSON = "application/json"


class RefusedPostError(Exception):
    """A post that is not landed, and the answer to it."""

    def __init__(
        self, status: HTTPStatus, why: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(why)
        self.status, self.why, self.headers = status, why, dict(headers or {})


class ClientGoneError(Exception):
    """The connection was closed before the post was complete."""


def refused_for_now(status: HTTPStatus, why: str, wait_s: float = 1) -> RefusedPostError:
    """Refuse a post that may be accepted a little later."""
    wait = {"Retry-After": str(max(math.ceil(wait_s), 1))}
    return RefusedPostError(status, f"{why}: post again later", wait)


class InFlight:
    """The bytes of all posts that have not landed yet."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0

    def add(self, size: int) -> None:
        """Count some more.

        Raises:
            RefusedPostError: They are too many.
        """
        if self._bytes + size > self._most:
            raise refused_for_now(HTTPStatus.TOO_MANY_REQUESTS, "too many bytes wait to be landed")
        self._bytes += size

    def remove(self, size: int) -> None:
        """Count them no more."""
        self._bytes -= size


class Post:
    """A request, as it arrives."""

    def __init__(
        self, http: Http, scope: Mapping[str, Any], receive: Receive, in_flight: InFlight
    ) -> None:
        self._http, self._scope, self._receive, self._in_flight = http, scope, receive, in_flight
        self._headers: Mapping[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        self._size = 0
        self.is_complete = False
        """Whether its body has been read to the end."""

    @property
    def kind(self) -> str:
        """The type of its content."""
        return self._header("content-type").partition(";")[0].strip().lower()

    def check(self) -> None:
        """Check all that is known before the body.

        Raises:
            RefusedPostError: It is not accepted.
        """
        if refused := next(self._refusals(), None):
            raise refused

    async def body(self) -> bytes:
        """Read the body.

        Raises:
            RefusedPostError: It is too large or too slow.
            ClientGoneError: It is not complete.
        """
        limits, parts = self._http.limits, []
        try:
            async with asyncio.timeout(limits.body_timeout.total_seconds()):
                while not self.is_complete:
                    part = await self._next_part()
                    self._in_flight.add(len(part))
                    self._size += len(part)
                    if self._size > limits.post_bytes:
                        raise self._too_large()
                    parts.append(part)
        except TimeoutError:
            why = f"the body is not complete after {limits.body_timeout}: post less at once"
            raise RefusedPostError(HTTPStatus.REQUEST_TIMEOUT, why) from None
        return b"".join(parts)

    async def discard(self) -> None:
        """Read what is left of the body and forget it, unless that would take too long."""
        left = _DISCARDED
        is_expected = "expect" in self._headers or self._declared > left
        try:
            async with asyncio.timeout(self._http.limits.body_timeout.total_seconds()):
                while not (self.is_complete or is_expected) and left > 0:
                    left -= len(await self._next_part())
        except TimeoutError:
            return

    def release(self) -> None:
        """Count its bytes no more."""
        self._in_flight.remove(self._size)

    async def _next_part(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        self.is_complete = not message.get("more_body", False)
        return bytes(message.get("body", b""))

    def _refusals(self) -> Iterator[RefusedPostError]:
        http, host = self._http, self._header("host")
        if name_of(http.host) in LOOPBACK and name_of(host) not in LOOPBACK:
            why = f"the host is {host!r}: post to {http.host}:{http.port}"
            yield RefusedPostError(HTTPStatus.FORBIDDEN, why)
        if "origin" in self._headers and is_foreign(origin := self._header("origin"), host):
            why = f"a page of {origin!r} may not post here"
            yield RefusedPostError(HTTPStatus.FORBIDDEN, why)
        if http.token and not bears(self._header("authorization"), revealed(http.token)):
            why = "the token is missing or wrong: send the header Authorization: Bearer TOKEN"
            yield RefusedPostError(HTTPStatus.UNAUTHORIZED, why, {"WWW-Authenticate": "Bearer"})
        if self._scope["path"] != http.path:
            yield RefusedPostError(HTTPStatus.NOT_FOUND, f"post to {http.path}")
        if (method := self._scope["method"]) != "POST":
            why = f"{method} is not answered: post to {http.path}"
            yield RefusedPostError(HTTPStatus.METHOD_NOT_ALLOWED, why, {"Allow": "POST"})
        yield from self._refused_bodies()

    def _refused_bodies(self) -> Iterator[RefusedPostError]:
        coding = self._header("content-encoding").lower()
        if coding not in ("", "identity"):
            why = f"Content-Encoding is {coding!r}: post the body as it is"
            yield RefusedPostError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why)
        if {"content-length", "transfer-encoding"} <= self._headers.keys():
            # Where such a body ends is what attackers and proxies disagree on.
            why = "the post has a Content-Length and a Transfer-Encoding: send one of them"
            yield RefusedPostError(HTTPStatus.BAD_REQUEST, why)
        if self._declared > self._http.limits.post_bytes:
            yield self._too_large()

    def _too_large(self) -> RefusedPostError:
        most = self._http.limits.post_bytes
        why = f"the body is too large: post up to {most} bytes at once"
        return RefusedPostError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)

    @property
    def _declared(self) -> int:
        return int(self._headers.get("content-length", 0))

    def _header(self, name: str) -> str:
        return self._headers.get(name, "")


def records_of(body: bytes, kind: str, most: int) -> Sequence[bytes]:
    r"""Split a body into records, each on one line.

    Raises:
        RefusedPostError: They are too many, or the body is not JSON but should be.

    >>> records_of(b'[{"n": 1},\n {"n": 2}]', "application/json", 9)
    [b'{"n":1}', b'{"n":2}']
    >>> records_of(b"one\n\ntwo", "text/plain", 9)
    [b'one', b'two']
    """
    if kind != _JSON:
        # Before they are split: a body of newlines would take eight times its size.
        _check_count(max(body.count(b"\n"), body.count(b"\r")), most)
        records = [line for line in body.splitlines() if line]
        _check_count(len(records), most)
        return records
    try:
        is_array = body.lstrip()[:1] == b"["
        parts = msgspec.json.decode(body, type=list[msgspec.Raw]) if is_array else [body]
        _check_count(len(parts), most)
        return [msgspec.json.format(bytes(part), indent=-1) for part in parts]
    except msgspec.MsgspecError as error:
        raise RefusedPostError(HTTPStatus.BAD_REQUEST, str(error)) from None
    except RecursionError:
        raise RefusedPostError(HTTPStatus.BAD_REQUEST, "JSON is nested too deeply") from None


def _check_count(records: int, most: int) -> None:
    if records > most:
        why = f"too many records: post up to {most} at once"
        raise RefusedPostError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
