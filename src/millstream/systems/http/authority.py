"""Who may send a request: programs of this machine, or those that know a token."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""The names of this machine, for itself."""


def name_of(host: str) -> str:
    """Return the name in a Host header, without the port.

    >>> name_of("LOCALHOST:7400"), name_of("[::1]:7400"), name_of("127.0.0.1.example:80")
    ('localhost', '[::1]', '127.0.0.1.example')
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


def is_foreign(origin: str, host: str) -> bool:
    """Return whether a browser sends a request to a host for a page of another one.

    >>> is_foreign("https://shop.example", "127.0.0.1:7401"), is_foreign("null", "127.0.0.1")
    (True, True)
    >>> is_foreign("http://localhost:3000", "127.0.0.1:7401")
    False
    """
    page, asked = name_of(urlsplit(origin).netloc), name_of(host)
    return page != asked and not (page in LOOPBACK and asked in LOOPBACK)


def bears(authorization: str, token: str) -> bool:
    """Return whether an Authorization header has the token.

    >>> bears("Bearer oyster", "oyster"), bears("Bearer pearl", "oyster"), bears("", "oyster")
    (True, False, False)
    """
    kind, _, sent = authorization.partition(" ")
    # Headers are read as Latin-1, whatever was sent.
    is_known = hmac.compare_digest(sent.strip().encode("latin-1"), token.encode())
    return kind.lower() == "bearer" and is_known
