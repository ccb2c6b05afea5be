"""A log: the file that each notice is added to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import Location, MillstreamError
    from millstream.systems.log.courier import LogCourier


@dataclass(frozen=True, slots=True)
class Log:
    """A file that each notice is added to, as a line of JSON."""

    path: str = ""
    """`logs/alerts.jsonl` of the home, unless said otherwise."""

    def alert_faults(self, alert: str, at: Location) -> Iterator[MillstreamError]:  # noqa: ARG002
        """Nothing can be wrong with it."""
        yield from ()

    @property
    def identified_by(self) -> tuple[str, ...]:
        """The file."""
        return (self.path,)

    def courier(self, place: Path) -> LogCourier:
        """Return a courier; the file is created with the first notice."""
        from millstream.systems.log.courier import LogCourier

        return LogCourier(Path(self.path) if self.path else place / "alerts.jsonl")
