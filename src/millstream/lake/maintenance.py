"""What maintenance did to a table, recorded in the home; and requests for it to be done now."""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from deltalake import DeltaTable

from millstream.lake.durable import write_durably
from millstream.lake.log import first_version
from millstream.lake.retention import TableReader
from millstream.lake.stored import stored_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from millstream.lake.compaction import Compacted
    from millstream.lake.home import Home
    from millstream.lake.retention import Deleted

_DAY_S = 86_400
_SAMPLE_EVERY_S = 3_600
_SAMPLES = 8 * 24


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a table is, on disk and as it is read."""

    files: int
    size: int
    """Bytes of the files that the newest version consists of."""
    files_on_disk: int
    size_on_disk: int
    """Bytes of the whole folder: earlier versions, changes and the log are in it."""
    log_files: int
    first_version: int
    version: int

    @property
    def versions(self) -> int:
        """How many versions can be read."""
        return self.version - self.first_version + 1


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done to a table so far."""

    at_s: float = 0
    """When it was last looked at and something was done."""
    compacted: int = 0
    """Small files that became large ones, in all."""
    into: int = 0
    """The large ones."""
    deleted: int = 0
    """Files that no kept version has, in all."""
    deleted_size: int = 0
    rows_dropped: int = 0
    """Rows that were kept as long as was declared, in all."""
    waits_for: TableReader | None = None
    """The reader because of which old versions are kept longer than declared."""
    trouble: str | None = None
    """Why the last maintenance did not end."""
    samples: tuple[tuple[float, int], ...] = ()
    """How many bytes the table had when: about one an hour, for eight days."""

    def plus(self, compacted: Compacted, deleted: Deleted, rows_dropped: int) -> Maintained:
        """Add what was done now."""
        return replace(
            self,
            at_s=time.time(),
            compacted=self.compacted + compacted.before,
            into=self.into + compacted.after,
            deleted=self.deleted + deleted.files,
            deleted_size=self.deleted_size + deleted.size,
            rows_dropped=self.rows_dropped + rows_dropped,
            trouble=None,
        )

    def sampled(self, size: int, now_s: float) -> Maintained:
        """Note how large the table is, if it was not noted within the hour."""
        if self.samples and now_s < self.samples[-1][0] + _SAMPLE_EVERY_S:
            return self
        return replace(self, samples=(*self.samples, (now_s, size))[-_SAMPLES:])

    def growth_per_day(self, size: int, now_s: float) -> float | None:
        """Return by how many bytes the table grows in a day; None until it is known an hour."""
        if not self.samples or now_s < self.samples[0][0] + _SAMPLE_EVERY_S:
            return None
        begin, then = self.samples[0]
        return (size - then) / (now_s - begin) * _DAY_S


def read_maintained(home: Home, table: str) -> Maintained:
    """Read what was done to a table."""
    found = _read(home.maintenance / f"{table}.json")
    if waits_for := found.get("waits_for"):
        found["waits_for"] = TableReader(**waits_for)
    found["samples"] = tuple((at, size) for at, size in found.get("samples", ()))
    return Maintained(**found)


def record_maintained(home: Home, table: str, done: Maintained) -> None:
    """Record what was done to a table."""
    home.maintenance.mkdir(exist_ok=True)
    write_durably(home.maintenance / f"{table}.json", json.dumps(asdict(done), indent=1) + "\n")


def sizes_of(table: Path) -> Sizes:
    """Measure a table."""
    opened = DeltaTable(str(table))
    stored, log = stored_files(opened), table / "_delta_log"
    lengths = list(lengths_under(table))
    return Sizes(
        files=len(stored),
        size=sum(file.size for file in stored),
        files_on_disk=len(lengths),
        size_on_disk=sum(lengths),
        log_files=sum(1 for _ in log.iterdir()),
        first_version=first_version(table),
        version=int(opened.version()),
    )


def lengths_under(folder: Path) -> Iterator[int]:
    """Give the bytes of each file in a folder; one that is deleted meanwhile is left out."""
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield os.lstat(os.path.join(place, name)).st_size


@dataclass(frozen=True, slots=True)
class Request:
    """Something that another process has the driver do."""

    mark: str
    act: Literal["maintain", "snapshot"]


@dataclass(frozen=True, slots=True)
class Requests:
    """How another process asks the driver to do something now, and learns that it is done."""

    home: Home

    def ask(self, act: Literal["maintain", "snapshot"]) -> Request:
        """Leave a request."""
        request = Request(uuid.uuid4().hex, act)
        self.home.maintenance.mkdir(exist_ok=True)
        write_durably(self._asked, json.dumps(asdict(request)))
        return request

    @property
    def asked(self) -> Request | None:
        """The request that is not answered yet."""
        found = _read(self._asked)
        request = Request(**found) if found else None
        return None if request is None or self.is_answered(request) else request

    def answer(self, request: Request) -> None:
        """Say that a request is done."""
        write_durably(self._answered, json.dumps(asdict(request)))

    def is_answered(self, request: Request) -> bool:
        """Whether a request is done."""
        return _read(self._answered).get("mark") == request.mark

    @property
    def _asked(self) -> Path:
        return self.home.maintenance / "request.asked"

    @property
    def _answered(self) -> Path:
        return self.home.maintenance / "request.answered"


def _read(file: Path) -> dict[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return dict(found)
