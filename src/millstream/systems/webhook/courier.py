"""Webhooks: a notice is posted as JSON."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from millstream.alert.destination import NotToldError, timeout_faults
from millstream.errors import conceal, fault
from millstream.model.duration import parse_duration
from millstream.settings import __version__
from millstream.settings.secret import Secret, revealed
from millstream.systems.webhook.request import SCHEMES, Poster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from millstream.alert.notice import Notice
    from millstream.errors import Location, MillstreamError
    from millstream.systems.webhook.request import Answer

_HIDDEN = "***"
_TELLING = 8
"""Parts of a path that are so long, and are no word, may be secrets."""
_WORD = re.compile(r"[a-z][a-z_-]*|[A-Z][a-z]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
_SERVER_FAILS = 500


@dataclass(frozen=True, slots=True)
class Webhook:
    """A server that is posted each notice, until it answers with a 2xx.

    A notice that was posted before carries the same `Idempotency-Key`. A 5xx, 408, 425, 429 or no
    answer is tried again; any other answer puts the notice aside as dead.
    """

    url: str
    """Only its host is ever printed."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent to this host alone; their values are never printed."""
    secret: str = ""
    """Signs what is sent, as the Standard Webhooks say: base64, with `whsec_` before it or not.

    Never printed.
    """
    timeout: str = "10 seconds"
    allow_private: bool = False
    """Whether a redirection may lead to an address that is not public."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", guarded_url(self.url))
        object.__setattr__(self, "secret", _guarded(self.secret))
        guarded = {name: _guarded(value) for name, value in self.headers.items()}
        object.__setattr__(self, "headers", guarded)

    def alert_faults(self, alert: str, at: Location) -> Iterator[MillstreamError]:
        """What is no address, no header, no secret or no length of time."""
        for option, got, expected in self._wrong():
            yield fault(
                "DESTINATION_REFUSED", at=at, alert=alert, option=option, got=got, expected=expected
            )
        yield from timeout_faults(self.timeout, alert, at)

    def _wrong(self) -> Iterator[tuple[str, str, str]]:
        """Give options, what they are, and what to write instead."""
        try:
            url = urlsplit(revealed(self.url))
            is_address = url.scheme in SCHEMES and bool(url.hostname) and url.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            yield "url", str(self.url), "an address that begins with https:// or http://"
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(name) or any(c in revealed(value) for c in "\r\n\0"):
                yield "headers", name, "a name and one line of text"
        if self.secret and _signing_key(revealed(self.secret)) is None:
            expected = "it in base64, as `openssl rand -base64 32` gives one; whsec_ may precede it"
            yield "secret", str(self.secret), expected

    def courier(self, place: Path) -> WebhookCourier:  # noqa: ARG002
        """Take note of the address; nothing is asked yet."""
        return WebhookCourier(self)

    @property
    def told_at(self) -> tuple[str, ...]:
        """The address, by which it is known again; only its hash is kept."""
        return (revealed(self.url),)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The server, as host:port."""
        url = urlsplit(revealed(self.url))
        return (f"{url.hostname}:{url.port or (443 if url.scheme == 'https' else 80)}",)


class WebhookCourier:
    """Posts notices to one webhook."""

    def __init__(self, webhook: Webhook) -> None:
        self._url, self._secret = revealed(webhook.url), revealed(webhook.secret)
        self._own = {name: revealed(value) for name, value in webhook.headers.items()}
        login = urlsplit(self._url)
        if login.username:
            said = f"{unquote(login.username)}:{unquote(login.password or '')}"
            self._own["Authorization"] = f"Basic {base64.b64encode(said.encode()).decode()}"
        self._poster = Poster(parse_duration(webhook.timeout), webhook.allow_private)

    def tell(self, notice: Notice) -> None:
        """Post a notice.

        Raises:
            NotToldError: It was not answered with a 2xx.
        """
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"millstream/{__version__}",
            "Idempotency-Key": notice.id,
            **self._signed(notice),
        }
        answer = self._poster.post(self._url, notice.body, headers, self._own)
        if answer.status // 100 != HTTPStatus.OK // 100:
            raise _refusal(answer)

    def close(self) -> None:
        """Nothing stays open."""

    def _signed(self, notice: Notice) -> dict[str, str]:
        if not self._secret:
            return {}
        key = _signing_key(self._secret)
        if key is None:
            why = "the secret is not base64"
            raise NotToldError(why)
        at = str(int(time.time()))
        signed = f"{notice.id}.{at}.".encode() + notice.body
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        signature = f"v1,{base64.b64encode(digest).decode()}"
        return {"webhook-id": notice.id, "webhook-timestamp": at, "webhook-signature": signature}


def _signing_key(secret: str) -> bytes | None:
    """Read the bytes that a secret stands for; None if it stands for none.

    >>> [_signing_key(text) for text in ("whsec_c2VzYW1l", "c2VzYW1l", "sesame", "whsec_")]
    [b'sesame', b'sesame', None, None]
    """
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True) or None
    except ValueError:
        return None


def guarded_url(url: str) -> str:
    """Have an address printed as its host alone, here and in whatever errors tell.

    >>> print(guarded_url("https://me:hunter2@hooks.example/T0AB12345/x?token=oyster"))
    https://hooks.example/***
    """
    if isinstance(url, Secret):
        return url
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        shown = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return Secret(url, _HIDDEN)
    if not (parts.path.strip("/") or parts.query or parts.password or parts.username):
        return url
    secrets = [value for _, value in parse_qsl(parts.query)] + [parts.password or ""]
    secrets += [p for p in parts.path.split("/") if len(p) >= _TELLING and not _WORD.fullmatch(p)]
    for secret in (url, parts.path if len(parts.path) >= _TELLING else "", *secrets):
        _guarded(secret)
        _guarded(unquote(secret))
    return Secret(url, f"{shown}/{_HIDDEN}" if host else _HIDDEN)


def _guarded(value: str) -> str:
    if isinstance(value, Secret):
        return value
    conceal(value, _HIDDEN)
    return Secret(value, _HIDDEN) if value else value


def _refusal(answer: Answer) -> NotToldError:
    said = f"answered {answer.status} {answer.reason}" + (f": {answer.text}" if answer.text else "")
    if answer.status >= _SERVER_FAILS or answer.status in _AGAIN:
        return NotToldError(said, after=_asked(answer.retry_after))
    if answer.location is not None:
        said = f"answered {answer.status} {answer.reason}, which leads elsewhere with another "
        said += "request; give the address that it leads to"
    return NotToldError(said, again=False)


def _asked(header: str | None) -> timedelta | None:
    """Read how long a server asks to be left alone: seconds, or a date.

    >>> _asked("120"), _asked("soon")
    (datetime.timedelta(seconds=120), None)
    """
    if header is None:
        return None
    if header.strip().isdigit():
        return timedelta(seconds=min(int(header), 86_400))
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(moment.astimezone(UTC) - datetime.now(UTC), timedelta())
