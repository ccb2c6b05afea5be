"""What happens in a program, as listeners get it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class StreamingListener:
    """Callbacks for what happens in a program; override those that matter."""

    def onStreamingStarted(self, streamingStarted: Any) -> None:
        """Do something when the program has started."""

    def onReceiverStarted(self, receiverStarted: Any) -> None:
        """Do something when a receiver has started."""

    def onReceiverError(self, receiverError: Any) -> None:
        """Do something when a receiver has reported an error."""

    def onReceiverStopped(self, receiverStopped: Any) -> None:
        """Do something when a receiver has stopped."""

    def onBatchSubmitted(self, batchSubmitted: Any) -> None:
        """Do something when a batch is planned."""

    def onBatchStarted(self, batchSubmitted: Any) -> None:
        """Do something when the outputs of a batch begin to run."""

    def onBatchCompleted(self, batchCompleted: Any) -> None:
        """Do something when all outputs of a batch have run."""

    def onOutputOperationStarted(self, outputOperationStarted: Any) -> None:
        """Do something when an output of a batch begins to run."""

    def onOutputOperationCompleted(self, outputOperationCompleted: Any) -> None:
        """Do something when an output of a batch has run."""


class EventValue:
    """A value of an event; each field is read by a call, as of the objects of pyspark.

    >>> EventValue(milliseconds=1000).milliseconds()
    1000
    """

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Callable[[], Any]:
        try:
            value = vars(self)["_fields"][name]
        except KeyError:
            raise AttributeError(name) from None
        return lambda: value

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._fields.items())
        return f"EventValue({shown})"

    def with_fields(self, **fields: Any) -> EventValue:
        """Copy it with other fields."""
        return EventValue(**(self._fields | fields))


class Events:
    """Passes what happens on to every listener; one that raises is logged and harms nobody."""

    def __init__(self, listeners: list[Any]) -> None:
        self._listeners = listeners

    def call(self, callback: str, **fields: Any) -> None:
        """Call one callback of every listener."""
        event = EventValue(**fields)
        for listener in self._listeners:
            try:
                getattr(listener, callback)(event)
            except Exception:
                _LOG.exception("%s of %r raises", callback, listener)

    def receiver_started(self, number: int, name: str) -> None:
        """Report that a receiver begins."""
        self.call("onReceiverStarted", receiverInfo=_receiver(number, name, active=True))

    def receiver_error(self, number: int, name: str, error: Exception) -> None:
        """Report that a receiver has failed."""
        info = _receiver(number, name, active=False, error=str(error))
        self.call("onReceiverError", receiverInfo=info)

    def receiver_stopped(self, number: int, name: str) -> None:
        """Report that a receiver has ended."""
        self.call("onReceiverStopped", receiverInfo=_receiver(number, name, active=False))


def _receiver(number: int, name: str, *, active: bool, error: str = "") -> EventValue:
    return EventValue(
        streamId=number,
        name=name,
        active=active,
        location="driver",
        executorId="driver",
        lastErrorMessage=error,
        lastError=error,
        lastErrorTime=-1,
    )
