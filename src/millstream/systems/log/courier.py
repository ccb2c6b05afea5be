"""A log: a notice is a line of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.alert.destination import NotSentError
from millstream.lake.durable import sync_folder, sync_written

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.model.notice import Notice


class LogCourier:
    """Adds notices to a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def send(self, notice: Notice) -> None:
        """Add a line, and force it to disk.

        Raises:
            NotSentError: The file cannot be written.
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
            why = f"{self._file}: {error.strerror}"
            raise NotSentError(why) from error

    def close(self) -> None:
        """Nothing stays open."""
