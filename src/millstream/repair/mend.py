"""What would mend one checkpoint: the smallest remedy that leaves no row lost or repeated."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from millstream.checkpoint.checksum import digest_path, seal_path
from millstream.checkpoint.entry import CommitEntry, Offsets
from millstream.errors import fault
from millstream.model.dataset import Source
from millstream.repair.reconstruct import LandingLog
from millstream.systems.kafka.settings import Kafka

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from millstream.checkpoint import Checkpoint
    from millstream.lake.home import Home
    from millstream.model.dataset import Table


@dataclass(frozen=True, slots=True)
class Remedy:
    """One step of a repair."""

    query: str
    what: str
    removes: tuple[Path, ...] = ()
    writes: Mapping[Path, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    """Tables that are moved aside as a whole, to be computed again from what is landed."""


class UnmendableError(Exception):
    """A checkpoint cannot be mended, only computed again."""

    def __init__(self, file: str, lost: str) -> None:
        super().__init__(file, lost)
        self.file, self.lost = file, lost


class Mender:
    """One damaged checkpoint of a source or table."""

    def __init__(self, dataset: Source | Table, home: Home, checkpoint: Checkpoint) -> None:
        self._dataset, self._home, self._checkpoint = dataset, home, checkpoint
        self._folder, self._held = checkpoint.folder, checkpoint.held.batch

    def remedies(self) -> tuple[Remedy, ...]:
        """Return the remedies.

        Raises:
            UnmendableError: It can only be computed again.
            CHECKPOINT_LOST: Of a source, and it cannot be.
        """
        try:
            return (*self._small_remedies(), *self._large_remedies())
        except UnmendableError as error:
            if isinstance(self._dataset, Source):
                file = str(self._checkpoint.path / error.file)
                raise fault(
                    "CHECKPOINT_LOST", query=self._dataset.name, file=file, lost=error.lost
                ) from error
            raise

    def _small_remedies(self) -> Iterator[Remedy]:
        for finding in self._checkpoint.findings:
            file = self._checkpoint.path / finding.file
            match finding.part:
                case "temporary":
                    yield self._remove("nothing reads it", file)
                case "checksum":
                    yield self._remove("the file it was kept of is whole", file, seal_path(file))
                case "operator" if not finding.is_harmless:
                    files = self._checkpoint.path.glob("state/*/_metadata/metadata")
                    every = [path for f in files for path in (f, seal_path(f))]
                    yield self._remove("Spark writes it again", file, *every)
                case "state" if finding.is_spare:
                    both = (file, digest_path(file))
                    beside = (seal_path(path) for path in both)
                    yield self._remove("an older snapshot will do", *both, *beside)

    def _large_remedies(self) -> Iterator[Remedy]:
        small = ("temporary", "checksum", "operator")
        left = [f for f in self._checkpoint.damage if f.part not in small and not f.is_spare]
        if not left:
            return
        self._refuse_mismatches()
        if self._folder.metadata_fault:
            name = self._checkpoint.held.query_id or str(uuid.uuid4())
            what = "written again, with the identity that the table knows"
            yield self._write("metadata", json.dumps({"id": name}), what)
        yield from self._sources()
        if not self._keeps_plan:
            plans = [n for n in self._numbers("offsets") if n > self._held]
            for number in plans:
                what = f"batch {number} is not in the table and will be planned again"
                yield self._remove(what, *self._entry("offsets", number))
        if self._held >= 0:
            yield from self._commits()
            yield from self._offsets()

    def _refuse_mismatches(self) -> None:
        for finding in self._checkpoint.damage:
            if finding.part == "schema":
                self._give_up(finding.file, "what the rows of the state are made of")
            if finding.part == "table" and not finding.file.startswith("offsets/"):
                self._give_up(finding.file, f"the way from it to the table: {finding.what}")

    @cached_property
    def _keeps_plan(self) -> bool:
        """Whether a batch that is planned but not in the table can be carried out as planned."""
        planned, held = self._held + 1, self._held
        if planned not in self._folder.offsets.sound or self._folder.offsets.last != planned:
            return False
        if self._unlanded_entries or (held < 0 and self._folder.source_start.faults):
            return False
        return held < 0 or (held in self._folder.ends and self._loads(held))

    @cached_property
    def _is_stateful(self) -> bool:
        commits = self._folder.commits.sound.values()
        return self._folder.is_stateful or any(commit.states for commit in commits)

    def _loads(self, batch: int) -> bool:
        """Whether Spark can continue after a batch: it is committed, and its state is whole."""
        commits = self._folder.commits.sound
        if batch < 0:
            return True
        faults = self._checkpoint.state.faults(commits, batch) if batch in commits else ()
        return batch in commits and all(fault.is_spare for fault in faults)

    @property
    def _can_replay(self) -> bool:
        """Whether Spark can carry the last batch out once more, from what came before it."""
        needed = {self._held, max(self._held - 1, 0)}
        return needed <= self._folder.ends.keys() and self._loads(self._held - 1)

    @cached_property
    def _replays(self) -> bool:
        """Whether Spark will carry the last batch out once more, for the table to skip."""
        return not self._loads(self._held) and self._can_replay

    def _commits(self) -> Iterator[Remedy]:
        held = self._held
        if self._loads(held):
            return
        if self._replays:
            present = [path for path in self._entry("commits", held) if path.exists()]
            damaged = self._damaged_state(held)
            if present or damaged:
                what = f"Spark does batch {held} once more, and the table, which has it, skips it"
                yield self._remove(what, *present, *damaged)
            return
        proof = self._folder.commits.sound or isinstance(self._dataset, Source)
        if self._is_stateful or not proof:
            lost = [f.file for f in self._checkpoint.damage if f.part == "state"]
            self._give_up((*lost, f"commits/{held}")[0], "the state that the query continues from")
        watermark = self._offsets_of(held).watermark_ms
        what = f"written again: the table holds batch {held}"
        yield self._write(f"commits/{held}", CommitEntry(watermark).to_text(), what)

    def _damaged_state(self, batch: int) -> list[Path]:
        commits = self._folder.commits.sound
        faults = self._checkpoint.state.faults(commits, batch) if batch in commits else ()
        files = [fault.file for fault in faults if fault.file.exists()]
        with_digests = [path for file in files for path in (file, digest_path(file))]
        return [path for file in with_digests for path in (file, seal_path(file))]

    def _offsets(self) -> Iterator[Remedy]:
        held = self._held
        if self._folder.offsets.fault(held):
            what = "written again, from where the landed rows came from"
            yield self._write(f"offsets/{held}", self._offsets_of(held).to_text(), what)
        before = held - 1
        if before < 0 or self._keeps_plan or not self._folder.offsets.fault(before):
            return
        what = f"batch {held} is done, so that nothing is read from here: an earlier one will do"
        yield self._write(f"offsets/{before}", self._stand_in(before).to_text(), what)

    def _stand_in(self, batch: int) -> Offsets:
        """Find offsets to stand in for lost ones that nothing is read from."""
        earlier = [n for n in self._folder.ends if n < batch]
        if earlier:
            return self._folder.ends[max(earlier)].as_stand_in()
        return self._offsets_of(self._held).as_stand_in()

    def _offsets_of(self, batch: int) -> Offsets:
        if batch in self._folder.offsets.sound:
            return self._folder.offsets.sound[batch]
        if self._landing is None:
            self._give_up(f"offsets/{batch}", "which rows the last batch had read")
        return self._landing.offsets(batch)

    @cached_property
    def _landing(self) -> LandingLog | None:
        if not isinstance(self._dataset, Source):
            return None
        return LandingLog(self._dataset, self._home, self._checkpoint)

    @cached_property
    def _faulty_entries(self) -> tuple[int, ...]:
        if not self._folder.reads_files or self._checkpoint.last < 0:
            return ()
        return tuple(n for n in self._folder.needed_files if self._folder.files.fault(n))

    @cached_property
    def _unlanded_entries(self) -> tuple[int, ...]:
        """Entries of the file log that no landed batch needs, from the first faulty one on."""
        if self._landing is None:
            return ()
        faulty = [n for n in self._faulty_entries if not self._landing.has_landed(n)]
        return tuple(n for n in self._folder.needed_files if faulty and n >= min(faulty))

    def _sources(self) -> Iterator[Remedy]:
        for number, why in self._folder.source_start.faults.items():
            is_needed = self._held < 0 or not isinstance(self._kafka, Kafka)
            if is_needed:
                self._give_up(f"sources/0/{number}", f"where the source began ({why})")
            yield self._remove("only the first batch reads it", *self._entry("sources/0", number))
        if self._faulty_entries and self._landing is None:
            self._give_up("sources/0", "which files had been read")
        for number in self._unlanded_entries:
            what = "nothing of it is in the table: its files will be found again"
            yield self._remove(what, *self._entry("sources/0", self._folder.file_name(number)))
        if self._landing is not None:
            landed = [n for n in self._faulty_entries if n not in self._unlanded_entries]
            for number, files in self._landing.entries(landed).items():
                name = f"sources/0/{self._folder.file_name(number)}"
                what = "written again, from where the landed rows came from"
                lines = (file.to_line() for file in files)
                yield self._write(name, "\n".join(("v1", *lines)), what)

    @property
    def _kafka(self) -> object:
        return getattr(self._dataset, "connector", None)

    def _numbers(self, log: str) -> list[int]:
        folder = self._checkpoint.path / log
        names = (file.name for file in folder.iterdir()) if folder.exists() else ()
        return sorted(int(name) for name in names if name.isdigit())

    def _entry(self, log: str, name: int | str) -> tuple[Path, Path]:
        file = self._checkpoint.path / log / str(name)
        return file, seal_path(file)

    def _remove(self, what: str, *files: Path) -> Remedy:
        present = tuple(file for file in files if file.exists())
        return Remedy(self._dataset.name, f"{self._short(files[0])}: {what}", present)

    def _write(self, name: str, text: str, what: str) -> Remedy:
        file = self._checkpoint.path / name
        return Remedy(self._dataset.name, f"{self._short(file)}: {what}", writes={file: text})

    def _short(self, file: Path) -> str:
        return str(file.relative_to(self._home.path))

    def _give_up(self, file: str, lost: str) -> NoReturn:
        raise UnmendableError(file, lost)
