"""Errors of alerts: whom they are told to, by which time, and which of them are meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import CommandError, DeclarationError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class NotADestinationError(DeclarationError):
    """An alert is told to something that cannot be told."""

    code = "NOT_A_DESTINATION"

    def __init__(self, alert: str, *, got: str, at: Location) -> None:
        super().__init__(
            f"alert {alert!r} has to={got}",
            fix="tell it to ms.Webhook, ms.Log, ms.Email or ms.Kafka, or to a list of these",
            at=at.of("to"),
        )


class DestinationRefusedError(DeclarationError):
    """A destination has an option it cannot be told with."""

    code = "DESTINATION_REFUSED"

    def __init__(self, option: str, got: str, *, alert: str, expected: str, at: Location) -> None:
        super().__init__(
            f"alert {alert!r} is told to a destination with {option}={got!r}",
            fix=f"write {expected}",
            at=at.of("to"),
        )


class CooldownTimeError(DeclarationError):
    """A cooldown goes by a time that the answer does not have."""

    code = "COOLDOWN_TIME"

    def __init__(
        self,
        alert: str,
        *,
        column: str | None,
        got: str | None,
        columns: Sequence[str],
        at: Location,
    ) -> None:
        what = f"{column!r} is {got}, not a time" if got else f"its answer has no {column!r}"
        if column is None:
            what = "no column of its answer is known to be the event time"
        super().__init__(
            f"alert {alert!r} cannot have its cooldown: {what}",
            fix="name a column that holds a time, say event_time='at' or 'window.end'; "
            f"the answer has {', '.join(columns)}",
            at=at.of("cooldown"),
        )


class UnknownAlertError(CommandError):
    """A command names an alert that the app does not have."""

    code = "UNKNOWN_ALERT"

    def __init__(self, name: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no alert {name!r}", fix=f"{closest(name, known)}alerts are {listed(known)}"
        )


class UnknownNoticeError(CommandError):
    """A command names a notice that was never entered, or was delivered."""

    code = "UNKNOWN_NOTICE"

    def __init__(self, id_: str) -> None:
        super().__init__(
            f"no notice that can be tried again has an id that begins with {id_!r}",
            fix="`millstream alerts APP` lists them; one that is delivered is not told again",
        )
