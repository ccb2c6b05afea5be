"""Mail: a notice is a message."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TYPE_CHECKING, Literal

import msgspec

from millstream.alert.destination import NotToldError, timeout_faults
from millstream.errors import conceal, fault
from millstream.model.duration import parse_duration
from millstream.settings.secret import Secret, revealed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from millstream.alert.notice import Notice
    from millstream.errors import Location, MillstreamError

_HIDDEN = "***"
_FOR_GOOD = 500
_LAST_PORT = 65_535
_SECURITIES = ("none", "starttls", "tls")


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
        """Nobody to write to, no way to, or a password that would be sent for anyone to read."""
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
        """Give options, what they are, and what to write instead."""
        if self.security not in _SECURITIES:
            yield "security", str(self.security), '"starttls", "tls" or "none"'
        elif self.password and self.security == "none":
            yield "security", self.security, '"starttls" or "tls" with a password'
        if self.port not in range(1, _LAST_PORT + 1):
            yield "port", str(self.port), f"a number from 1 to {_LAST_PORT}"

    def courier(self, place: Path) -> MailCourier:  # noqa: ARG002
        """Take note of the server; nothing is asked yet."""
        return MailCourier(self)

    @property
    def told_at(self) -> tuple[str, ...]:
        """Those who are written to, by whom it is known again; only their hash is kept."""
        return tuple(sorted(self.to))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The server, as host:port."""
        return (f"{self.host}:{self.port}",)


class MailCourier:
    """Sends notices by one server."""

    def __init__(self, mail: Email) -> None:
        self._mail = mail
        self._told: dict[str, set[str]] = {}
        """Who has a notice that others are still to get; a driver that comes later tells all."""

    def tell(self, notice: Notice) -> None:
        """Send a message to all who do not have it yet.

        Raises:
            NotToldError: The server did not take it, or not for all of them.
        """
        told = self._told.get(notice.id, set())
        left = [address for address in self._mail.to if address not in told]
        refused = self._send(message_of(notice, self._mail), left)
        self._told.pop(notice.id, None)
        if not refused:
            return
        refusal = _refusals(refused)
        if refusal.again:
            self._told[notice.id] = set(self._mail.to) - refused.keys()
        raise refusal

    def _send(self, message: EmailMessage, to: Sequence[str]) -> Mapping[str, tuple[int, bytes]]:
        """Send a message; give whom the server refused, and why, if others have it."""
        try:
            with self._server() as server:
                return server.send_message(message, to_addrs=to)
        except smtplib.SMTPRecipientsRefused as refusal:
            # Nobody has it then, not even those who are not named: 421 ends the exchange.
            raise _refusals(refusal.recipients) from refusal
        except smtplib.SMTPResponseException as refusal:
            said = _said(refusal.smtp_code, refusal.smtp_error)
            raise NotToldError(said, again=refusal.smtp_code < _FOR_GOOD) from refusal
        except (OSError, smtplib.SMTPException) as error:
            where = f"{self._mail.host}:{self._mail.port}"
            told = f"{where}: {type(error).__name__}: {error}"
            raise NotToldError(told) from error

    def close(self) -> None:
        """Nothing stays open."""

    def _server(self) -> smtplib.SMTP:
        mail, seconds = self._mail, parse_duration(self._mail.timeout).total_seconds()
        if mail.security not in _SECURITIES:
            # Whoever does not ask `alert_faults` must not send a password for anyone to read.
            why = f"security={mail.security!r} is none of {', '.join(_SECURITIES)}"
            raise NotToldError(why)
        if mail.security == "tls":
            context = ssl.create_default_context()
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                mail.host, mail.port, timeout=seconds, context=context
            )
        else:
            server = smtplib.SMTP(mail.host, mail.port, timeout=seconds)
        if mail.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        if mail.user:
            server.login(mail.user, revealed(mail.password))
        return server


def message_of(notice: Notice, mail: Email) -> EmailMessage:
    """Write a message; no value of a row can become a header of its own."""
    message = EmailMessage()
    subject = f"[{notice.app}] {notice.alert} {notice.about}"
    message["Subject"] = " ".join(subject.splitlines()).rstrip()
    message["From"], message["To"] = mail.sender, ", ".join(mail.to)
    message["Message-ID"] = f"<{notice.id}@millstream>"
    message["Idempotency-Key"] = notice.id
    row = msgspec.json.decode(notice.row)
    lines = [f"{name}: {value}" for name, value in row.items()]
    at = [f"event time: {notice.event_time}"] if notice.event_time else []
    message.set_content("\n".join([f"{notice.alert} of {notice.app}", *at, "", *lines, ""]))
    return message


def _refusals(refused: Mapping[str, tuple[int, bytes]]) -> NotToldError:
    told = [f"{address}: {_said(*answer)}" for address, answer in refused.items()]
    again = any(code < _FOR_GOOD for code, _ in refused.values())
    return NotToldError("; ".join(told), again=again)


def _said(code: int, said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return f"answered {code} {text}"
