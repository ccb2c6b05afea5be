"""Webhooks: a notice is posted as JSON."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from millstream.alert.destination import NotSentError
from millstream.model.duration import parse_duration
from millstream.settings import __version__
from millstream.settings.secret import revealed
from millstream.systems.webhook.request import Poster

if TYPE_CHECKING:
    from millstream.model.notice import Notice
    from millstream.systems.webhook.request import HttpResponse
    from millstream.systems.webhook.settings import Webhook
from millstream.systems.webhook.settings import signing_key

_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
_SERVER_FAILS = 500


class WebhookCourier:
    """Posts notices to one webhook."""

    def __init__(self, webhook: Webhook) -> None:
        self._url, self._secret = revealed(webhook.url), revealed(webhook.secret)
        self._own = {name: revealed(value) for name, value in webhook.headers.items()}
        login = urlsplit(self._url)
        if login.username:
            credentials = f"{unquote(login.username)}:{unquote(login.password or '')}"
            self._own["Authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self._poster = Poster(parse_duration(webhook.timeout), webhook.allow_private)

    def send(self, notice: Notice) -> None:
        """Post a notice.

        Raises:
            NotSentError: It was not answered with a 2xx.
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
        key = signing_key(self._secret)
        if key is None:
            why = "the secret is not base64"
            raise NotSentError(why)
        at = str(int(time.time()))
        signed = f"{notice.id}.{at}.".encode() + notice.body
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        signature = f"v1,{base64.b64encode(digest).decode()}"
        return {"webhook-id": notice.id, "webhook-timestamp": at, "webhook-signature": signature}


def _refusal(answer: HttpResponse) -> NotSentError:
    reason = f"answered {answer.status} {answer.reason}" + (
        f": {answer.text}" if answer.text else ""
    )
    if answer.status >= _SERVER_FAILS or answer.status in _AGAIN:
        return NotSentError(reason, after=_retry_after(answer.retry_after))
    if answer.location is not None:
        reason = f"answered {answer.status} {answer.reason}, which leads elsewhere with another "
        reason += "request; give the address that it leads to"
    return NotSentError(reason, again=False)


def _retry_after(header: str | None) -> timedelta | None:
    """Read how long a server asks to wait: seconds, or a date.

    >>> _retry_after("120"), _retry_after("soon")
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
