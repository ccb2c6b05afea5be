"""The state of a query's operators: which files a batch starts from, and whether they are whole."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint.checksum import read_digest, read_seal, size_fits
from millstream.checkpoint.entry import parse_operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from millstream.checkpoint.entry import CommitEntry

_CHANGELOG, _SNAPSHOT = ".changelog", ".zip"


@dataclass(frozen=True, slots=True)
class StateFault:
    """What keeps state from being loaded."""

    file: Path
    what: str
    is_spare: bool = False
    """Whether the state can be loaded without the file, from an older snapshot."""
    is_harmless: bool = False
    """Whether Spark works with it."""


@dataclass(frozen=True, slots=True)
class State:
    """The state folder of a query; `deep` reads every file, otherwise sizes must do."""

    path: Path
    deep: bool

    def faults(self, commits: Mapping[int, CommitEntry], batch: int) -> Iterator[StateFault]:
        """Find what keeps the state that a batch has left from being loaded.

        Args:
            commits: The commit log, as far as it can be read.
            batch: The batch, one of the log.
        """
        for operator, partitions in commits[batch].states.items():
            names = {b: c.states.get(operator, ()) for b, c in commits.items()}
            for number, stores in enumerate(partitions):
                folder = self.path / str(operator) / str(number)
                known = {b: set(p[number]) for b, p in names.items() if number < len(p)}
                for store in stores:
                    yield from self._chain(folder, store, batch + 1, known)

    def described_wrongly(self) -> Iterator[StateFault]:
        """Find descriptions of operators that cannot be read.

        Spark writes them again where there is none at all; where some are missing, it takes the
        others as those of another query.
        """
        files = [o / "_metadata" / "metadata" for o in self._operators if not newest_described(o)]
        are_gone = not any(file.exists() for file in files)
        for file in files:
            if not file.exists():
                yield StateFault(file, "it is missing", is_harmless=are_gone)
            elif why := _unreadable_operator(file):
                yield StateFault(file, why)

    def schemas_wrong(self) -> Iterator[StateFault]:
        """Find schemas of state that are missing or not as they were written."""
        for operator in self._operators:
            files = [f for f in operator.glob("*/**/_metadata/*") if _is_plain(f)]
            files += [f for f in operator.glob("_stateSchema/**/*") if _is_plain(f)]
            if not files:
                yield StateFault(operator / "0" / "_metadata" / "schema", "it is missing")
            for file in (*files, *newest_described(operator)):
                if not file.stat().st_size:
                    yield StateFault(file, "it is empty")
                elif read_seal(file) == "broken":
                    yield StateFault(file, "it is not what its checksum says")

    @property
    def _operators(self) -> list[Path]:
        return sorted(self.path.glob("[0-9]*"))

    def _chain(
        self, folder: Path, store: str, version: int, known: Mapping[int, set[str]]
    ) -> Iterator[StateFault]:
        """Follow a state back to the snapshot it is built on."""
        newest = [f for f in folder.rglob(f"{version}_{store}.*") if _is_state(f)]
        if not newest:
            missing = folder / f"{version}_{store}{_CHANGELOG}"
            yield StateFault(missing, "it is missing")
            return
        place = newest[0].parent
        for v in range(version, 0, -1):
            names = {store} if v == version else known.get(v - 1)
            files = [f for f in place.glob(f"{v}_*") if _is_state(f) and _is_of(f, names)]
            faults = {f: why for f in files if (why := self._damage(f))}
            snapshots = [f for f in files if f.suffix == _SNAPSHOT and f not in faults]
            changes = [f for f in files if f.suffix == _CHANGELOG]
            for file, why in faults.items():
                if file.suffix == _SNAPSHOT or not snapshots or v == version:
                    is_spare = file.suffix == _SNAPSHOT and bool(changes)
                    yield StateFault(file, why, is_spare)
            if snapshots:
                return
            if not files:
                yield StateFault(place / f"{v}_{_one(names)}{_CHANGELOG}", "it is missing")
                return

    def _damage(self, file: Path) -> str:
        if not file.stat().st_size:
            return "it is empty"
        if not (is_whole(file) if self.deep else size_fits(file)):
            return "it is not what its checksum says"
        return _lacking(file, deep=self.deep) if file.suffix == _SNAPSHOT else ""


def is_whole(file: Path) -> bool:
    """Whether a state file is as it was written, by either of its checksums."""
    seal = read_seal(file)
    if seal == "whole":
        return True
    digest = read_digest(file)
    return digest == "whole" or "broken" not in (seal, digest)


def state_files(state: Path) -> tuple[Path, ...]:
    """List all changes and snapshots, needed or not."""
    return tuple(sorted(f for f in state.rglob("*_*") if _is_state(f)))


def _is_state(file: Path) -> bool:
    return file.suffix in (_CHANGELOG, _SNAPSHOT) and not file.name.startswith(".")


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.name.startswith(".")


def newest_described(operator: Path) -> list[Path]:
    """Find the newest description of an operator whose schema may change; none of others."""
    found = [f for f in operator.glob("_metadata/v2/*") if f.name.isdigit()]
    return sorted(found, key=lambda file: int(file.name))[-1:]


def _is_of(file: Path, names: set[str] | None) -> bool:
    return names is None or file.stem.partition("_")[2] in names


def _one(names: set[str] | None) -> str:
    return min(names) if names else "?"


def _lacking(snapshot: Path, *, deep: bool) -> str:
    """Return which file of a snapshot is missing."""
    try:
        with zipfile.ZipFile(snapshot) as opened:
            text = opened.read("metadata").decode().partition("\n")[2]
        parts = json.loads(text)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        return f"it is no snapshot: {error}"
    for part in parts.get("sstFiles", ()):
        name = f"SSTs/{part['dfsSstFileName']}"
        file = snapshot.parent / name
        if not file.exists() or file.stat().st_size != part["sizeBytes"]:
            return f"its file {name} is missing or cut"
        if deep and read_seal(file) == "broken":
            return f"its file {name} is not what its checksum says"
    return ""


def _unreadable_operator(file: Path) -> str:
    if read_seal(file) == "broken":
        return "it is not what its checksum says"
    try:
        parse_operator(file.read_bytes())
    except (ValueError, KeyError, TypeError) as error:
        return str(error)
    return ""


def operators_with(checkpoint: Path, named: str) -> list[str]:
    """Find operators by a name of their state, in what Spark wrote of them."""
    found = []
    for operator in sorted((checkpoint / "state").glob("[0-9]*")):
        described = (file.read_bytes() for file in newest_described(operator))
        # The names are in JSON that is text in JSON.
        if any(named.encode() in text.replace(b"\\", b"") for text in described):
            found.append(operator.name)
    return found
