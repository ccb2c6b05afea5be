"""A log: a notice is a line of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.alert.destination import NotToldError
from millstream.lake.durable import sync_folder, sync_written

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
            is_new = not self._file.exists()
            with self._file.open("ab") as file:
                file.write(notice.body + b"\n")
                sync_written(file)
            if is_new:
                sync_folder(self._file.parent)
        except OSError as error:
            told = f"{self._file}: {error.strerror}"
            raise NotToldError(told) from error

    def close(self) -> None:
        """Nothing stays open."""
