"""What is wrong with a checkpoint: each file that would make Spark fail, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from millstream.checkpoint.checksum import digest_path, read_digest, read_seal, seal_path
from millstream.checkpoint.folder import CheckpointFolder
from millstream.checkpoint.state import State, StateFault, is_whole, state_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Part = Literal[
    "metadata",
    "offsets",
    "commits",
    "sources",
    "state",
    "operator",
    "schema",
    "checksum",
    "temporary",
    "table",
]


@dataclass(frozen=True, slots=True)
class TableProgress:
    """The query and the last batch that a table records."""

    query_id: str = ""
    batch: int = -1


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be."""

    part: Part
    file: str
    """Within the checkpoint."""
    what: str
    is_harmless: bool = False
    """Whether Spark works with it."""
    is_spare: bool = False
    """Whether Spark works without it."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint beside what the table of its query holds.

    `deep` reads every file of the state, which Spark itself does when it loads it.
    """

    path: Path
    held: TableProgress = field(default_factory=TableProgress)
    deep: bool = True
    has_table: bool = True
    """Whether the query writes to a table of the home, which it is then checked against."""

    @cached_property
    def folder(self) -> CheckpointFolder:
        """What can be read of it."""
        return CheckpointFolder(self.path)

    @property
    def state(self) -> State:
        """The state of its operators."""
        return State(self.path / "state", self.deep)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is not as it should be."""
        looks = (self._checksums, self._temporary, self._metadata, self._table, self._offsets)
        more = (self._commits, self._sources, self._states)
        return tuple(finding for look in (*looks, *more) for finding in look())

    @property
    def damage(self) -> tuple[Finding, ...]:
        """What would make Spark fail, or its results wrong."""
        return tuple(f for f in self.findings if not f.is_harmless)

    @property
    def last(self) -> int:
        """The last batch there should be offsets of; -1 if none."""
        return max(self.folder.offsets.last, self.held.batch)

    def _checksums(self) -> Iterator[Finding]:
        broken = "it is damaged; the file it is kept of is whole"
        plain = ["metadata", "offsets/*", "commits/*", "sources/*/*", "state/**/_metadata/*"]
        plain += ["state/**/SSTs/*"] if self.deep else []
        for file in sorted(f for pattern in plain for f in self.path.glob(pattern)):
            if not file.name.startswith(".") and read_seal(file) == "seal broken":
                yield self._finding("checksum", seal_path(file), broken)
        for file in state_files(self.path / "state") if self.deep else ():
            if not is_whole(file):
                continue
            if read_seal(file) in ("broken", "seal broken"):
                yield self._finding("checksum", seal_path(file), broken)
            digest = digest_path(file)
            if read_digest(file) in ("broken", "seal broken"):
                yield self._finding("checksum", digest, broken)

    def _temporary(self) -> Iterator[Finding]:
        what = "a write that was cut short left it behind; nothing reads it"
        for file in temporary_files(self.path):
            yield self._finding("temporary", file, what, is_harmless=True)

    def _metadata(self) -> Iterator[Finding]:
        if self.path.exists() and self.last >= 0 and (why := self.folder.metadata_fault):
            yield Finding("metadata", "metadata", why)

    def _table(self) -> Iterator[Finding]:
        held, done = self.held, self.folder.commits.last
        if not self.has_table:
            return
        if held.batch >= 0 and self.folder.query_id not in (None, held.query_id):
            what = f"it names another query than the table, which names {held.query_id}"
            yield Finding("table", "metadata", what)
        if held.batch > self.folder.offsets.last:
            what = f"it is missing, though the table holds batch {held.batch}"
            yield Finding("table", f"offsets/{held.batch}", what)
        if done > held.batch:
            what = f"batch {done} is marked as done, but the table holds {_up_to(held.batch)}"
            yield Finding("table", f"commits/{done}", what)

    def _offsets(self) -> Iterator[Finding]:
        log, needed = self.folder.offsets, {self.last, self.last - 1}
        for number in range(log.first, log.last + 1):
            if why := log.fault(number):
                is_harmless = number not in needed
                yield Finding("offsets", f"offsets/{number}", why, is_harmless=is_harmless)
        before, is_done = self.last - 1, self.folder.commits.last >= self.last
        if before in log.sound and before not in self.folder.ends and not is_done:
            what = f"it stands in for one that was lost, and batch {self.last} is not done"
            yield Finding("offsets", f"offsets/{before}", what)

    def _commits(self) -> Iterator[Finding]:
        log, planned = self.folder.commits, self.folder.offsets.last
        for number in range(log.first, log.last + 1):
            if why := log.fault(number):
                is_harmless = number < log.last
                yield Finding("commits", f"commits/{number}", why, is_harmless=is_harmless)
        if log.last > planned:
            what = f"it is ahead of the offsets, which end at {planned}"
            yield Finding("commits", f"commits/{log.last}", what)
        elif log.last < planned - 1:
            end = f"end at {log.last}" if log.last >= 0 else "are gone"
            what = f"it is missing: the commits {end}, though the offsets continue to {planned}"
            yield Finding("commits", f"commits/{planned - 1}", what)

    def _sources(self) -> Iterator[Finding]:
        folder = self.folder
        for number, why in folder.source_start.faults.items():
            yield Finding("sources", f"sources/0/{number}", why)
        if self.last < 0 and not folder.files.faults:
            return
        needed = folder.needed_files if folder.reads_files else range(0)
        for number in sorted({*needed, *folder.files.faults}):
            if fault := folder.files.fault(number):
                file = f"sources/0/{folder.file_name(number)}"
                yield Finding("sources", file, fault, is_harmless=number not in needed)

    def _states(self) -> Iterator[Finding]:
        commits = self.folder.commits.sound
        done = self.folder.commits.last
        if not self.folder.is_stateful:
            if done in commits and any(commits[done].states.values()):
                yield Finding("state", "state", "it is missing")
            return
        needed = list(self.state.faults(commits, done)) if done in commits else []
        for fault in needed:
            finding = self._finding("state", fault.file, fault.what)
            yield Finding("state", finding.file, fault.what, is_spare=fault.is_spare)
        yield from self._described()
        for file in state_files(self.path / "state") if self.deep else ():
            if not is_whole(file) and file not in {fault.file for fault in needed}:
                what = "it is not what its checksum says; no batch to come reads it"
                yield self._finding("state", file, what, is_harmless=True)

    def _described(self) -> Iterator[Finding]:
        kinds: tuple[tuple[Part, Iterator[StateFault]], ...] = (
            ("operator", self.state.described_wrongly()),
            ("schema", self.state.schemas_wrong()),
        )
        for part, faults in kinds:
            for fault in faults:
                is_harmless = fault.is_harmless
                yield self._finding(part, fault.file, fault.what, is_harmless=is_harmless)

    def _finding(self, part: Part, file: Path, what: str, *, is_harmless: bool = False) -> Finding:
        return Finding(part, str(file.relative_to(self.path)), what, is_harmless=is_harmless)


def temporary_files(path: Path) -> list[Path]:
    """List what writes that were cut short left behind."""
    hidden = sorted(path.rglob(".*"))
    return [file for file in hidden if file.name.endswith((".tmp", ".tmp.crc"))]


def _up_to(batch: int) -> str:
    return f"batches up to {batch}" if batch >= 0 else "none"
