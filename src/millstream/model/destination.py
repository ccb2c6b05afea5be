"""Whom alerts are told to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.errors import Location, MillstreamError


class Courier(Protocol):
    """The way to one destination, open for one driver."""

    def tell(self, notice: Any) -> None:
        """Hand a notice over, or raise NotToldError."""
        ...

    def close(self) -> None:
        """Let the connection go."""
        ...


@runtime_checkable
class Destination(Protocol):
    """Someone who is told of alerts, each at least once, under a key that stays the same."""

    def alert_faults(self, alert: str, at: Location) -> Iterator[MillstreamError]:
        """Find what is wrong with the settings, without the network."""
        ...

    def courier(self, place: Path) -> Courier:
        """Open the way; `place` is a folder of the home for whatever is kept there."""
        ...
