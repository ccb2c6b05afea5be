"""Webhooks: the address that each notice is posted to, and what it is signed with."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from millstream.alert.destination import timeout_faults
from millstream.errors import fault
from millstream.settings.secret import Secret, revealed
from millstream.systems.address import guarded_secret
from millstream.systems.webhook.request import SCHEMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from millstream.errors import Location, MillstreamError
    from millstream.systems.webhook.courier import WebhookCourier


_HIDDEN = "***"
_LONG = 8
"""Parts of a path that are so long, and are no word, may be secrets."""
_WORD = re.compile(r"[a-z][a-z_-]*|[A-Z][a-z]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Webhook:
    """A server that is posted each notice, until it answers with a 2xx.

    A notice that was posted before carries the same `Idempotency-Key`. A 5xx, 408, 425, 429 or no
    answer is tried again; any other answer marks the notice as dead.
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
        object.__setattr__(self, "secret", guarded_secret(self.secret))
        guarded = {name: guarded_secret(value) for name, value in self.headers.items()}
        object.__setattr__(self, "headers", guarded)

    def alert_faults(self, alert: str, at: Location) -> Iterator[MillstreamError]:
        """What is no address, no header, no secret or no length of time."""
        for option, got, expected in self._wrong():
            yield fault(
                "DESTINATION_REFUSED", at=at, alert=alert, option=option, got=got, expected=expected
            )
        yield from timeout_faults(self.timeout, alert, at)

    def _wrong(self) -> Iterator[tuple[str, str, str]]:
        """Yield wrong options, their values, and what to write instead."""
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
        if self.secret and signing_key(revealed(self.secret)) is None:
            expected = "it in base64, as `openssl rand -base64 32` gives one; whsec_ may precede it"
            yield "secret", str(self.secret), expected

    def courier(self, place: Path) -> WebhookCourier:  # noqa: ARG002
        """Return a courier; it connects with the first notice."""
        from millstream.systems.webhook.courier import WebhookCourier

        return WebhookCourier(self)

    @property
    def identified_by(self) -> tuple[str, ...]:
        """The address; only its hash is kept."""
        return (revealed(self.url),)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The server, as host:port."""
        url = urlsplit(revealed(self.url))
        return (f"{url.hostname}:{url.port or (443 if url.scheme == 'https' else 80)}",)


def signing_key(secret: str) -> bytes | None:
    """Read the bytes that a secret stands for; None if it stands for none.

    >>> [signing_key(text) for text in ("whsec_c2VzYW1l", "c2VzYW1l", "sesame", "whsec_")]
    [b'sesame', b'sesame', None, None]
    """
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True) or None
    except ValueError:
        return None


def guarded_url(url: str) -> str:
    """Have an address printed as its host alone, here and in error messages.

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
    secrets += [p for p in parts.path.split("/") if len(p) >= _LONG and not _WORD.fullmatch(p)]
    for secret in (url, parts.path if len(parts.path) >= _LONG else "", *secrets):
        guarded_secret(secret)
        guarded_secret(unquote(secret))
    return Secret(url, f"{shown}/{_HIDDEN}" if host else _HIDDEN)
