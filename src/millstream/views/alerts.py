"""Alerts: which were told to whom, which wait, and which are put aside."""

from __future__ import annotations

import difflib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.alert.deliveries import STATES, Deliveries, Silence
from millstream.errors import closest, fault, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.alert.deliveries import Delivery
    from millstream.lake.home import Home
    from millstream.model.graph import Graph


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """How a notice stands with one destination."""

    id: str
    alert: str
    key: Mapping[str, Any]
    event_time: str | None
    row: Mapping[str, Any]
    destination: str
    state: str
    attempts: int
    next_at: datetime | None
    """When it is tried again, if it is pending."""
    done_at: datetime | None
    reason: str
    """Why it was not told when it was last tried."""
    repeats: int
    """How many more rows the cooldown has kept back."""

    @staticmethod
    def of(delivery: Delivery) -> DeliveryView:
        """Show a delivery."""
        notice = delivery.notice
        waits = delivery.state == "pending" and delivery.attempts
        return DeliveryView(
            notice.id,
            notice.alert,
            msgspec.json.decode(notice.key),
            notice.event_time,
            msgspec.json.decode(notice.row),
            delivery.destination,
            delivery.state,
            delivery.attempts,
            _moment(delivery.next_at) if waits else None,
            _moment(delivery.done_at) if delivery.done_at is not None else None,
            delivery.reason,
            delivery.repeats,
        )


@dataclass(frozen=True, slots=True)
class SilenceView:
    """What nobody is told of, and until when."""

    alert: str | None
    key: Mapping[str, str]
    until: datetime

    @staticmethod
    def of(silence: Silence) -> SilenceView:
        """Show a silence."""
        return SilenceView(silence.alert or None, silence.key, _moment(silence.until))


@dataclass(frozen=True, slots=True)
class AlertsView:
    """The alerts of a home."""

    home: str
    counts: Mapping[str, int]
    """Deliveries by state."""
    silences: tuple[SilenceView, ...]
    deliveries: tuple[DeliveryView, ...]
    """The newest first."""

    @staticmethod
    def of(home: Home, *, alert: str | None, state: str | None, limit: int) -> AlertsView:
        """Look at the alerts of a home."""
        deliveries = Deliveries.existing(home.alerts)
        if deliveries is None:
            return AlertsView(str(home.path), dict.fromkeys(STATES, 0), (), ())
        try:
            listed = deliveries.listed(alert=alert, state=state, limit=limit)
            return AlertsView(
                str(home.path),
                deliveries.counts(alert),
                tuple(map(SilenceView.of, deliveries.silences(time.time()))),
                tuple(map(DeliveryView.of, listed)),
            )
        finally:
            deliveries.close()


@dataclass(frozen=True, slots=True)
class RetryView:
    """What is tried again."""

    home: str
    notices: int


def retry(home: Home, *, alert: str | None, id_: str) -> RetryView:
    """Have what is dead or silenced told after all.

    Raises:
        UNKNOWN_NOTICE: An id is given, and there is no such notice.
    """
    deliveries = Deliveries.existing(home.alerts)
    found = deliveries.retry(alert=alert, id_=id_) if deliveries else 0
    if deliveries:
        deliveries.close()
    if id_ and not found:
        raise fault("UNKNOWN_NOTICE", id_=id_)
    return RetryView(str(home.path), found)


def silence(home: Home, *, alert: str | None, key: Mapping[str, str], for_s: float) -> SilenceView:
    """Have nobody told for so long from now on; for no time, have them told again."""
    said = Silence(alert or "", key, time.time() + for_s)
    deliveries = Deliveries(home.alerts)
    deliveries.silence(said)
    deliveries.close()
    return SilenceView.of(said)


def hold_to_alerts(graph: Graph | None, alert: str | None) -> None:
    """Make sure that an app has an alert of a name.

    Raises:
        UNKNOWN_ALERT: It has not.
    """
    names = [each.name for each in graph.alerts] if graph else []
    if alert is not None and graph is not None and alert not in names:
        raise fault("UNKNOWN_ALERT", name=alert, nearest=closest(alert, names), known=listed(names))


def hold_to_keys(graph: Graph | None, alert: str | None, key: Mapping[str, str]) -> None:
    """Make sure that alerts are known by the columns that a silence names.

    Raises:
        ARGUMENT_REFUSED: None of them is known by such a column.
    """
    if graph is None:
        return
    known = sorted({c for each in graph.alerts if alert in (None, each.name) for c in each.key})
    for name, value in key.items():
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            expected = f"{nearest[0]}={value}; " if nearest else "a column of the key; "
            expected += f"columns of the key are {listed(known)}"
            raise fault(
                "ARGUMENT_REFUSED", option="--key", value=f"{name}={value}", expected=expected
            )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
