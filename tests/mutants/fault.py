"""One-line faults: the committed list, and what planting one does."""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness import HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path("src/millstream")
LISTS = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Fault:
    """A plausible mistake: a text of a file, and what stands there instead."""

    room: str
    what: str
    """What is wrong then; it names the fault."""
    file: str
    """In the package."""
    old: str
    new: str
    tests: tuple[str, ...]
    """What is expected to notice, as pytest is given it; options too."""
    unnoticed: str = ""
    """Why no test notices it, if that is so."""

    @contextmanager
    def planted(self, tree: Path) -> Iterator[Path]:
        """Make the mistake in a copy of the project, for a while; give the file.

        Raises:
            HarnessError: The text is not there exactly once: the list is stale.
        """
        path = tree / SOURCE / self.file
        text = path.read_text() if path.exists() else ""
        if (found := text.count(self.old)) != 1:
            message = f"{self.room}: {self.what!r}: {self.file} has {self.old!r} {found} times"
            raise HarnessError(message)
        path.write_text(text.replace(self.old, self.new))
        try:
            yield path
        finally:
            path.write_text(text)


def read_faults() -> tuple[Fault, ...]:
    """Read the lists, one for each room."""
    return tuple(
        Fault(path.stem, **entry | {"tests": tuple(entry["tests"])})
        for path in sorted(LISTS.glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["fault"]
    )
