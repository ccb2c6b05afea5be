"""Records posted over HTTP to a receiver in the driver."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.settings.secret import revealed
from millstream.systems.address import guarded_secret
from millstream.systems.http.listen import listen
from millstream.systems.record_source import ReceiverSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError
    from millstream.landing.inbox import Inbox

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What a bearer token may be, by RFC 6750."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """How much clients of `ms.Http` may send, and how long they may take."""

    connections: int = 512
    """Open at once; another one then closes the one that has kept the receiver waiting longest."""
    post_bytes: int = 8 << 20
    """Of the body of one post."""
    post_records: int = 100_000
    bytes_in_flight: int = 64 << 20
    """Of all posts that have arrived, in part or as a whole, and have not landed."""
    header_timeout: timedelta = timedelta(seconds=10)
    """From the connection, or the first byte of a further post, to the end of the header."""
    body_timeout: timedelta = timedelta(seconds=30)
    """From the end of the header to the end of the body."""
    idle_timeout: timedelta = timedelta(seconds=60)
    """From an answer to the next post."""


@dataclass(frozen=True, slots=True)
class Http(ReceiverSource):
    """Records that others post to this machine: a JSON object, an array of them, or lines.

    `200` says that the records are landed, whatever their verdicts. Any other answer, or none,
    means that they may not be: post them again. It listens on loopback by default, and then
    answers programs of this machine only.
    """

    port: int
    host: str = "127.0.0.1"
    path: str = "/"
    format: str = "json"
    schema: str | StructType = "value STRING"
    token: str = ""
    """What clients have to send, as `Authorization: Bearer …`. Never printed."""
    limits: HttpLimits = field(default_factory=HttpLimits)

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", guarded_secret(self.token))

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A format that does not exist, a token that cannot be sent, a limit below one."""
        # `super()` does not work in a dataclass with slots.
        yield from ReceiverSource.faults(self, source, at)
        for option, value, expected in self._wrong():
            yield fault(
                "LIMIT_REFUSED", at=at, source=source, option=option, value=value, expected=expected
            )

    def _wrong(self) -> Iterator[tuple[str, object, str]]:
        """Yield wrong options, their values, and what to write instead."""
        if self.token and not _TOKEN.fullmatch(revealed(self.token)):
            yield "token", self.token, "letters, digits and -._~+/ only"
        for limit in fields(self.limits):
            value = getattr(self.limits, limit.name)
            if isinstance(value, timedelta):
                if value <= timedelta():
                    yield f"limits.{limit.name}", str(value), "a length of time above 0"
            elif value < 1:
                yield f"limits.{limit.name}", value, "1 or more"

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:  # noqa: ARG002
        """Try the port.

        Raises:
            PORT_TAKEN: Something else listens there.
        """
        listen(self.host, self.port, f"source {source!r}", at).close()

    def receive(self, inbox: Inbox) -> None:
        """Answer posts until the app stops."""
        from millstream.systems.http.receiver import serve

        with listen(self.host, self.port, "the receiver") as listening:
            serve(self, listening, inbox)
