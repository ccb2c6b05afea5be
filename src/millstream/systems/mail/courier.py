"""Mail: a notice is a message."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from typing import TYPE_CHECKING

import msgspec

from millstream.alert.destination import NotSentError
from millstream.model.duration import parse_duration
from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.notice import Notice
    from millstream.systems.mail.settings import Email
from millstream.systems.mail.settings import SECURITIES

_FOR_GOOD = 500


class MailCourier:
    """Sends notices by one server."""

    def __init__(self, mail: Email) -> None:
        self._mail = mail
        self._received: dict[str, set[str]] = {}
        """Who has a notice that others lack; a later driver sends it to all again."""

    def send(self, notice: Notice) -> None:
        """Send a message to all recipients that do not have it yet.

        Raises:
            NotSentError: The server did not take it, or not for all of them.
        """
        received = self._received.get(notice.id, set())
        left = [address for address in self._mail.to if address not in received]
        refused = self._send(message_of(notice, self._mail), left)
        self._received.pop(notice.id, None)
        if not refused:
            return
        refusal = _refusals(refused)
        if refusal.again:
            self._received[notice.id] = set(self._mail.to) - refused.keys()
        raise refusal

    def _send(self, message: EmailMessage, to: Sequence[str]) -> Mapping[str, tuple[int, bytes]]:
        """Send a message; return the recipients that were refused, and why, if others have it."""
        try:
            with self._server() as server:
                return server.send_message(message, to_addrs=to)
        except smtplib.SMTPRecipientsRefused as refusal:
            # No recipient has it then, not even those not named: 421 ends the exchange.
            raise _refusals(refusal.recipients) from refusal
        except smtplib.SMTPResponseException as refusal:
            said = _smtp_answer(refusal.smtp_code, refusal.smtp_error)
            raise NotSentError(said, again=refusal.smtp_code < _FOR_GOOD) from refusal
        except (OSError, smtplib.SMTPException) as error:
            where = f"{self._mail.host}:{self._mail.port}"
            why = f"{where}: {type(error).__name__}: {error}"
            raise NotSentError(why) from error

    def close(self) -> None:
        """Nothing stays open."""

    def _server(self) -> smtplib.SMTP:
        mail, seconds = self._mail, parse_duration(self._mail.timeout).total_seconds()
        if mail.security not in SECURITIES:
            # A caller that skips `alert_faults` must not send a password in clear text.
            why = f"security={mail.security!r} is none of {', '.join(SECURITIES)}"
            raise NotSentError(why)
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


def _refusals(refused: Mapping[str, tuple[int, bytes]]) -> NotSentError:
    reasons = [f"{address}: {_smtp_answer(*answer)}" for address, answer in refused.items()]
    again = any(code < _FOR_GOOD for code, _ in refused.values())
    return NotSentError("; ".join(reasons), again=again)


def _smtp_answer(code: int, said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return f"answered {code} {text}"
