"""How large the tables of a home are, and what maintenance does to them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.lake.home import QUARANTINE
from millstream.lake.maintenance import lengths_under, read_maintained, sizes_of
from millstream.model.graph import KEEP_VERSIONS
from millstream.model.query_options import UNDECLARED

if TYPE_CHECKING:
    from collections.abc import Collection

    from millstream.lake.home import Home
    from millstream.lake.maintenance import Maintained
    from millstream.model.graph import Graph

_FOR_EVER = "for ever"


@dataclass(frozen=True, slots=True)
class TableSizeView:
    """How large one table is."""

    name: str
    files: int
    size: int
    """Bytes of the newest version."""
    files_on_disk: int
    size_on_disk: int
    log_files: int
    first_version: int
    """The first one that can still be read."""
    version: int
    growth_per_day: float | None
    """In bytes; None until it is known for an hour."""
    keep: str | None
    """How long rows are kept, of tables whose rows can have an age; for ever by default."""
    keep_versions: str | None
    """None if no app was named."""
    maintained_at: datetime | None
    compacted: int
    """Files that became larger ones, in all."""
    into: int
    deleted: int
    """Files that no kept version has, in all."""
    deleted_size: int
    rows_dropped: int
    sampled: tuple[tuple[datetime, int], ...]
    """How many bytes it had when: about one an hour, for eight days."""
    waits_for: str | None
    """The reader because of which old versions are kept longer than declared."""
    trouble: str | None

    @property
    def kept(self) -> str:
        """What is kept, in words."""
        return f"rows {self.keep or _FOR_EVER}, versions {self.keep_versions or KEEP_VERSIONS}"

    @property
    def done(self) -> str:
        """What maintenance has done, in words."""
        parts = [f"{self.compacted} files into {self.into}"] if self.compacted else []
        parts += [f"{self.deleted} deleted"] if self.deleted else []
        return ", ".join(parts)

    @staticmethod
    def of(home: Home, name: str, graph: Graph | None) -> TableSizeView:
        """Measure a table."""
        sizes, done = sizes_of(home.table(name)), read_maintained(home, name)
        keep, keep_versions = _kept(name, graph)
        return TableSizeView(
            name,
            files=sizes.files,
            size=sizes.size,
            files_on_disk=sizes.files_on_disk,
            size_on_disk=sizes.size_on_disk,
            log_files=sizes.log_files,
            first_version=sizes.first_version,
            version=sizes.version,
            growth_per_day=done.growth_per_day(sizes.size, time.time()),
            keep=keep,
            keep_versions=keep_versions,
            maintained_at=datetime.fromtimestamp(done.at_s, UTC) if done.at_s else None,
            compacted=done.compacted,
            into=done.into,
            deleted=done.deleted,
            deleted_size=done.deleted_size,
            rows_dropped=done.rows_dropped,
            sampled=tuple((datetime.fromtimestamp(at, UTC), size) for at, size in done.samples),
            waits_for=_reader(done, home),
            trouble=done.trouble,
        )


@dataclass(frozen=True, slots=True)
class SizesView:
    """How large a home is."""

    app: str
    home: str
    tables: tuple[TableSizeView, ...]
    checkpoints: int
    """Bytes of Spark's checkpoints: offsets, state, and which files were read."""

    @property
    def files_on_disk(self) -> int:
        """Files of all tables."""
        return sum(table.files_on_disk for table in self.tables)

    @property
    def size_on_disk(self) -> int:
        """Bytes of all tables."""
        return sum(table.size_on_disk for table in self.tables)

    @staticmethod
    def of(home: Home, graph: Graph | None, chosen: Collection[str] | None = None) -> SizesView:
        """Measure a home, or some datasets of it with their quarantines."""
        names = [
            name
            for name in home.tables
            if chosen is None or name.removesuffix(QUARANTINE) in chosen
        ]
        tables = tuple(TableSizeView.of(home, name, graph) for name in names)
        size = sum(lengths_under(home.path / "checkpoints"))
        app = graph.app if graph else str(home.read_manifest()["app"])
        return SizesView(app, str(home.path), tables, size)


def _kept(name: str, graph: Graph | None) -> tuple[str | None, str | None]:
    if graph is None:
        return None, None
    dataset = graph.datasets.get(name.removesuffix(QUARANTINE))
    keep_versions = graph.keep_versions_of(dataset)
    options = dataset.options if dataset else UNDECLARED
    keep = options.keep_quarantined if name.endswith(QUARANTINE) else options.keep
    return keep, keep_versions


def _reader(done: Maintained, home: Home) -> str | None:
    reader = done.waits_for
    if reader is None:
        return None
    where = "" if reader.home == str(home.path) else f" of {reader.home}"
    read = f"has read to version {reader.version}" if reader.version >= 0 else "has read nothing"
    return f"{reader.query!r}{where}, which {read}"


@dataclass(frozen=True, slots=True)
class CopyView:
    """A home that was copied."""

    source: str
    target: str
    size: int
    """Bytes."""
