"""The files that sources have set aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import fault, listed
from millstream.lake.unreadable import UnreadableFiles

if TYPE_CHECKING:
    from millstream.lake.home import Home


@dataclass(frozen=True, slots=True)
class UnreadableFileView:
    """A file of which no row has landed, and why."""

    source: str
    path: str
    reason: str
    batch: int
    """The batch that was to read it."""


@dataclass(frozen=True, slots=True)
class FilesView:
    """The files that are set aside in a home."""

    home: str
    files: tuple[UnreadableFileView, ...]

    @staticmethod
    def of(home: Home, source: str | None = None) -> FilesView:
        """Show those of all sources, or of one."""
        found = (
            UnreadableFileView(name, file.path, file.reason, file.batch)
            for name in _sources(home, source)
            for file in UnreadableFiles(home.connector(name)).read()
        )
        return FilesView(str(home.path), tuple(found))


def retry(home: Home, source: str | None = None) -> FilesView:
    """Have the driver read files again; return which."""
    shown = FilesView.of(home, source)
    for name in {file.source for file in shown.files}:
        paths = [file.path for file in shown.files if file.source == name]
        UnreadableFiles(home.connector(name)).request(paths)
    return shown


def _sources(home: Home, source: str | None) -> list[str]:
    home.verify_in_use()
    known = [name for name in home.tables if home.is_landing(name)]
    if source is not None and source not in known:
        expected = f"a source of the home: {listed(known)}"
        raise fault("ARGUMENT_REFUSED", option="--source", value=source, expected=expected)
    return known if source is None else [source]
