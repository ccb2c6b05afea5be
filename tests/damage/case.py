"""Ways to damage the checkpoints of a home: every file, in every way."""

from __future__ import annotations

import random
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from millstream.lake.home import Home

Kind = Literal["delete", "empty", "cut", "flip", "garbage"]
KINDS: tuple[Kind, ...] = ("delete", "empty", "cut", "flip", "garbage")

_IDENTITY, _NUMBER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Case:
    """One way to damage a home."""

    kind: Kind
    file: str
    """A file or folder, within the home."""

    @property
    def name(self) -> str:
        """What is done to what."""
        return f"{self.kind} {self.file}"

    def inflict(self, home: Home) -> None:
        """Do it."""
        path = home.path / self.file
        if path.is_dir():
            shutil.rmtree(path)
        elif self.kind == "delete":
            path.unlink()
        else:
            path.write_bytes(_changed(path.read_bytes(), self))


def cases(home: Home) -> tuple[Case, ...]:
    """List every damage there is to the checkpoints of a home: each file, and each folder whole."""
    folder = home.path / "checkpoints"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    plain = [path for path in files if path.suffix != ".crc"]
    found = [Case(kind, _within(home, file)) for file in plain for kind in KINDS]
    for file in files:
        if file.suffix == ".crc":
            # Without a checksum nothing is checked: to delete it is no case of its own.
            found += [Case(kind, _within(home, file)) for kind in KINDS if kind != "delete"]
    folders = [*folder.glob("*"), *folder.glob("*/*"), *folder.glob("*/state/*/*")]
    return (*found, *(Case("delete", _within(home, f)) for f in sorted(folders) if f.is_dir()))


def chosen(all_cases: Iterable[Case], number: int, seed: int = 0) -> tuple[Case, ...]:
    """Take some cases, of every kind and of every sort of file in turn."""
    dice = random.Random(seed)
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in all_cases:
        groups.setdefault((case.kind, _sort(case.file)), []).append(case)
    for group in groups.values():
        group.sort(key=lambda case: [int(n) for n in _NUMBER.findall(case.file)])
    picked: list[Case] = []
    while len(picked) < number and any(groups.values()):
        # The newest entries are those that Spark starts from.
        picked += [g.pop(dice.choice((-1, dice.randrange(len(g))))) for g in groups.values() if g]
    return tuple(picked[:number])


def _changed(data: bytes, case: Case) -> bytes:
    middle = len(data) // 2
    match case.kind:
        case "cut":
            return data[:middle]
        case "flip" if data:
            return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        case "garbage":
            return random.Random(case.file).randbytes(max(len(data), 1))
    return b""


def _sort(file: str) -> str:
    """Tell files of one sort by their names: numbers and identities apart."""
    return _NUMBER.sub("0", _IDENTITY.sub("", file))


def _within(home: Home, path: Path) -> str:
    return str(path.relative_to(home.path))
