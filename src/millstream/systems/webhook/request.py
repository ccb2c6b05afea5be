"""One HTTP request with bounds: on its time, its size, and where it may be redirected."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from millstream.alert.destination import NotSentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

SCHEMES = ("http", "https")
_PORTS = {"http": 80, "https": 443}
_MOST_BYTES = 64 << 10
_MOST_REDIRECTS = 3
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL = (ipaddress.ip_network("64:ff9b:1::/48"), ipaddress.ip_network("::/96"))
"""NAT64 within a network, and addresses of IPv4 as they were once written."""
_KEEPING = (307, 308)
"""Redirections that have the same request made again; after others it would be a GET."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What a server said."""

    status: int
    reason: str
    retry_after: str | None
    text: str
    """The beginning of the body."""
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Poster:
    """How requests are made."""

    timeout: timedelta
    """For all of a request, from the look-up of the name to the last byte of the answer."""
    allow_private: bool = False
    """Whether a redirection may lead to an address that is not public."""

    def post(
        self, url: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]
    ) -> HttpResponse:
        """Post, and follow redirections that keep the request.

        Args:
            url: Where to; the user may write any address.
            body: What.
            headers: Sent to any host.
            own: Sent to the host of `url` alone: they may hold secrets.

        Raises:
            NotSentError: No answer in time, or a redirection may not be followed.
        """
        first = here = urlsplit(url)
        for _ in range(_MOST_REDIRECTS + 1):
            is_at_home = _origin(here) == _origin(first)
            sent = {**headers, **(own if is_at_home else {})}
            answer = self._ask(here, body, sent, anywhere=is_at_home or self.allow_private)
            if answer.status not in _KEEPING or answer.location is None:
                return answer
            here = _next(here, answer.location)
        why = f"more than {_MOST_REDIRECTS} redirections"
        raise NotSentError(why, again=False)

    def _ask(
        self, url: SplitResult, body: bytes, headers: Mapping[str, str], *, anywhere: bool
    ) -> HttpResponse:
        seconds, host = self.timeout.total_seconds(), url.hostname or ""
        port = url.port or _PORTS[url.scheme]
        connection = http.client.HTTPConnection(host, port, timeout=seconds)
        expired = threading.Event()
        timer = threading.Timer(seconds, _cut, (connection, expired))
        timer.daemon = True
        timer.start()
        try:
            connection.sock = _connected(url, port, seconds, anywhere=anywhere)
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            connection.request("POST", path, body, dict(headers))
            return _read(connection.getresponse())
        except (OSError, http.client.HTTPException, ValueError) as error:
            is_late = expired.is_set() or isinstance(error, TimeoutError)
            why = f"no answer within {seconds:g} s" if is_late else _reason(error)
            reason = f"{host}:{port}: {why}"
            raise NotSentError(reason) from None
        finally:
            timer.cancel()
            connection.close()


def _connected(url: SplitResult, port: int, seconds: float, *, anywhere: bool) -> socket.socket:
    """Connect to the very address that was judged: a name may mean another one a moment later."""
    host, refused = url.hostname or "", None
    for address in _addresses(host, port):
        if not anywhere and not is_public(address):
            why = f"redirected to {host}, which is a private address; allow_private=True lets it"
            raise NotSentError(why, again=False)
        try:
            line = socket.create_connection((address, port), seconds)
        except OSError as error:
            refused = error
            continue
        if url.scheme == "http":
            return line
        return ssl.create_default_context().wrap_socket(line, server_hostname=host)
    raise refused or OSError(f"{host} has no address")


def is_public(address: str) -> bool:
    """Return whether an address is a public one, and any address embedded in it too.

    >>> [is_public(text) for text in ("1.1.1.1", "10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::")]
    [True, False, False, False]
    """
    ip = ipaddress.ip_address(address)
    # Which of these are global depends on the release of Python.
    if ip.is_multicast or not ip.is_global:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return True
    if ip.is_site_local or any(ip in network for network in _LOCAL):
        return False
    return all(is_public(inner) for inner in _packed(ip))


def _packed(address: ipaddress.IPv6Address) -> Iterator[str]:
    """Yield the IPv4 addresses that are embedded in an IPv6 address."""
    packed = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        packed.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    yield from (str(each) for each in packed if each is not None)


def _addresses(host: str, port: int) -> Iterator[str]:
    for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        address = ipaddress.ip_address(str(found[4][0]).partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        yield str(mapped or address)


def _next(here: SplitResult, location: str) -> SplitResult:
    there = urlsplit(urljoin(here.geturl(), location))
    is_address = there.scheme in SCHEMES and there.hostname
    if not is_address or (here.scheme == "https" and there.scheme != "https"):
        why = f"redirected from {here.scheme}: to {there.scheme or 'nothing'}:"
        raise NotSentError(why, again=False)
    return there


def _origin(url: SplitResult) -> tuple[str, str | None, int]:
    return url.scheme, url.hostname, url.port or _PORTS[url.scheme]


def _read(response: http.client.HTTPResponse) -> HttpResponse:
    text = response.read(_MOST_BYTES).decode(errors="replace")
    return HttpResponse(
        response.status,
        response.reason,
        response.getheader("Retry-After"),
        " ".join(text.split())[:200],
        response.getheader("Location"),
    )


def _cut(connection: http.client.HTTPConnection, expired: threading.Event) -> None:
    expired.set()
    line = connection.sock
    if line is not None:
        try:
            line.shutdown(socket.SHUT_RDWR)
        except OSError:
            line.close()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or f"{type(error).__name__}: {error}".rstrip(": ")
