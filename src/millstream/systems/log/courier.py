"""A log: a notice is a line of a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.alert.destination import NotToldError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.alert.notice import Notice
    from millstream.errors import Location, MillstreamError


@dataclass(frozen=True, slots=True)
class Log:
    """A file that each notice is added to, as a line of JSON."""

    path: str = ""
    """`logs/alerts.jsonl` of the home, unless said otherwise."""

    def alert_faults(self, alert: str, at: Location) -> Iterator[MillstreamError]:  # noqa: ARG002
        """Nothing can be wrong with it."""
        yield from ()

    @property
    def told_at(self) -> tuple[str, ...]:
        """The file, by which it is known again."""
        return (self.path,)

    def courier(self, place: Path) -> LogCourier:
        """Take note of the file; it is made when there is something to tell."""
        return LogCourier(Path(self.path) if self.path else place / "alerts.jsonl")


class LogCourier:
    """Adds notices to a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def tell(self, notice: Notice) -> None:
        """Add a line, and force it to disk.

        Raises:
            NotToldError: The file cannot be written.
        """
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, notice.body + b"\n")
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            told = f"{self._file}: {error.strerror}"
            raise NotToldError(told) from error

    def close(self) -> None:
        """Nothing stays open."""
