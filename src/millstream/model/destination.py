"""Where alerts are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.errors import Location, MillstreamError
    from millstream.model.notice import Notice


class Courier(Protocol):
    """A connection to one destination, open for one driver."""

    def send(self, notice: Notice) -> None:
        """Send a notice, or raise NotSentError."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@runtime_checkable
class Destination(Protocol):
    """Where an alert sends its notices, each at least once, under a key that stays the same."""

    def alert_faults(self, alert: str, at: Location) -> Iterator[MillstreamError]:
        """Find what is wrong with the settings, without the network."""
        ...

    def courier(self, place: Path) -> Courier:
        """Open a connection; `place` is a folder of the home for its files."""
        ...
