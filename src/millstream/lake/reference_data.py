"""Which versions of reference data a query is bound to, and copies of what has no versions."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from millstream.lake.durable import sync_file, sync_folder, write_durably

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class BoundReference:
    """A version of reference rows."""

    name: str
    """Identifies the reference after an edit of the function that asks for it."""
    version: str
    read_at_s: float
    copy: str | None
    """The folder that holds the rows; None if they have versions of their own."""
    columns: str


@dataclass(frozen=True, slots=True)
class ReferenceData:
    """The folder of the reference data of one query."""

    folder: Path

    def read(self) -> tuple[int, dict[str, BoundReference]]:
        """Return the last batch that has begun, and what is bound by name."""
        try:
            record = json.loads(self._record.read_text())
        except FileNotFoundError:
            return -1, {}
        # Records of an earlier Millstream have no name: those references are read again.
        bound = [BoundReference(**one) for one in record["bound"] if "name" in one]
        return record["begun"], {one.name: one for one in bound}

    def write(self, begun: int, bound: Mapping[str, BoundReference]) -> None:
        """Record a batch that begins, and what is bound."""
        self.folder.mkdir(parents=True, exist_ok=True)
        record = {"begun": begun, "bound": [*map(asdict, bound.values())]}
        write_durably(self._record, json.dumps(record))

    def copied(self, write: Callable[[str], None]) -> str:
        """Have a copy written, to its end, and return its name."""
        copy = self.copy(f"copy-{time.time_ns()}")
        try:
            write(str(copy))
            for file in copy.iterdir():
                sync_file(file)
            sync_folder(copy)
        except BaseException:
            shutil.rmtree(copy, ignore_errors=True)
            raise
        return copy.name

    def copy(self, name: str) -> Path:
        """Return where a copy is."""
        return self.folder / name

    def clear(self, bound: Mapping[str, BoundReference]) -> None:
        """Remove copies that nothing is bound to."""
        used = {one.copy for one in bound.values()}
        for folder in self.folder.glob("*-*") if self.folder.exists() else ():
            if folder.name not in used:
                shutil.rmtree(folder, ignore_errors=True)

    @property
    def _record(self) -> Path:
        return self.folder / "bound.json"
