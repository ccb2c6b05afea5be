"""Mail: the recipients of each notice, and the server that sends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millstream.alert.destination import timeout_faults
from millstream.errors import conceal, fault
from millstream.settings.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from millstream.errors import Location, MillstreamError
    from millstream.systems.mail.courier import MailCourier


_HIDDEN = "***"
_LAST_PORT = 65_535
SECURITIES = ("none", "starttls", "tls")


@dataclass(frozen=True, slots=True)
class Email:
    """People who get a message for each notice; its Message-ID is made of the notice's id."""

    to: Sequence[str]
    sender: str
    host: str = "localhost"
    port: int = 25
    user: str = ""
    password: str = ""
    """Never printed."""
    security: Literal["none", "starttls", "tls"] = "none"
    timeout: str = "30 seconds"

    def __post_init__(self) -> None:
        to = (self.to,) if isinstance(self.to, str) else tuple(self.to)
        object.__setattr__(self, "to", to)
        if self.password and not isinstance(self.password, Secret):
            conceal(self.password, _HIDDEN)
            object.__setattr__(self, "password", Secret(self.password, _HIDDEN))

    def alert_faults(self, alert: str, at: Location) -> Iterator[MillstreamError]:
        """No recipient, a wrong option, or a password that would be sent in clear text."""
        for option, addresses in (("to", self.to), ("sender", (self.sender,))):
            for address in addresses or ("",):
                if "@" not in address or len(address.splitlines()) > 1:
                    expected = "an address such as ops@example.org"
                    yield fault(
                        "DESTINATION_REFUSED",
                        at=at,
                        alert=alert,
                        option=option,
                        got=address,
                        expected=expected,
                    )
        for option, got, expected in self._wrong():
            yield fault(
                "DESTINATION_REFUSED", at=at, alert=alert, option=option, got=got, expected=expected
            )
        yield from timeout_faults(self.timeout, alert, at)

    def _wrong(self) -> Iterator[tuple[str, str, str]]:
        """Yield wrong options, their values, and what to write instead."""
        if self.security not in SECURITIES:
            yield "security", str(self.security), '"starttls", "tls" or "none"'
        elif self.password and self.security == "none":
            yield "security", self.security, '"starttls" or "tls" with a password'
        if self.port not in range(1, _LAST_PORT + 1):
            yield "port", str(self.port), f"a number from 1 to {_LAST_PORT}"

    def courier(self, place: Path) -> MailCourier:  # noqa: ARG002
        """Return a courier; it connects with the first notice."""
        from millstream.systems.mail.courier import MailCourier

        return MailCourier(self)

    @property
    def identified_by(self) -> tuple[str, ...]:
        """The recipients; only their hash is kept."""
        return tuple(sorted(self.to))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The server, as host:port."""
        return (f"{self.host}:{self.port}",)
