"""The alerts of a home: which were delivered, which are pending and which are dead."""

from __future__ import annotations

import difflib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.alert.deliveries import STATES, Deliveries, Silence
from millstream.alert.objectives import OBJECTIVES, OBJECTIVES_KEY
from millstream.errors import closest, fault, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.alert.deliveries import Delivery
    from millstream.lake.home import Home
    from millstream.model.graph import Graph


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """The delivery of a notice to one destination."""

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
    """Why the last attempt failed."""
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
    """Which alerts are not sent, and until when."""

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
    left_out: int = 0
    """How many more there are."""

    @staticmethod
    def of(home: Home, *, alert: str | None, state: str | None, limit: int | None) -> AlertsView:
        """Read the alerts of a home; all of them, or the newest."""
        deliveries = Deliveries.existing(home.alerts)
        if deliveries is None:
            return AlertsView(str(home.path), dict.fromkeys(STATES, 0), (), ())
        try:
            listed = tuple(deliveries.listed(alert=alert, state=state, limit=limit))
            counts = deliveries.counts(alert)
            return AlertsView(
                str(home.path),
                counts,
                tuple(map(SilenceView.of, deliveries.silences(time.time()))),
                tuple(map(DeliveryView.of, listed)),
                (counts[state] if state else sum(counts.values())) - len(listed),
            )
        finally:
            deliveries.close()


@dataclass(frozen=True, slots=True)
class RetryView:
    """What is tried again."""

    home: str
    notices: int


def retry(home: Home, *, alert: str | None, id_: str) -> RetryView:
    """Send dead and silenced notices again.

    Raises:
        UNKNOWN_NOTICE: There is no notice with this id.
    """
    deliveries = Deliveries.existing(home.alerts)
    found = deliveries.retry(alert=alert, id_=id_) if deliveries else 0
    if deliveries:
        deliveries.close()
    if id_ and not found:
        raise fault("UNKNOWN_NOTICE", id_=id_)
    return RetryView(str(home.path), found)


def silence(home: Home, *, alert: str | None, key: Mapping[str, str], for_s: float) -> SilenceView:
    """Stop sending alerts for this long from now on; 0 sends them again."""
    created = Silence(alert or "", key, time.time() + for_s)
    deliveries = Deliveries(home.alerts)
    deliveries.silence(created)
    deliveries.close()
    return SilenceView.of(created)


def check_alert(graph: Graph | None, alert: str | None) -> None:
    """Check that an app has an alert of this name.

    Raises:
        UNKNOWN_ALERT: It has not.
    """
    names = list(_keys(graph)) if graph else []
    if alert is not None and graph is not None and alert not in names:
        raise fault("UNKNOWN_ALERT", name=alert, nearest=closest(alert, names), known=listed(names))


def check_key_columns(graph: Graph | None, alert: str | None, key: Mapping[str, str]) -> None:
    """Check that the columns of a silence are columns of an alert's key.

    Raises:
        ARGUMENT_REFUSED: No alert has such a column in its key.
    """
    if graph is None:
        return
    keys = _keys(graph).items()
    known = sorted({column for name, key in keys if alert in (None, name) for column in key})
    for name, value in key.items():
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            expected = f"{nearest[0]}={value}; " if nearest else "a column of the key; "
            expected += f"columns of the key are {listed(known)}"
            raise fault(
                "ARGUMENT_REFUSED", option="--key", value=f"{name}={value}", expected=expected
            )


def _keys(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Return the columns that each alert is about; notices of objectives are like an alert's."""
    keys = {alert.name: alert.key for alert in graph.alerts}
    return {**keys, OBJECTIVES: OBJECTIVES_KEY} if graph.notify else keys


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
