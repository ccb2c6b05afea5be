"""Damage to checkpoints: every file deleted, emptied, cut, changed or overwritten, and the outcome.

A home that has run is copied, one file of its checkpoints is damaged, and it is repaired and run on
with more input. It must hold then what it would hold had nothing happened, or refuse plainly.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from deltalake import DeltaTable

from millstream.errors import MillstreamError, SparkFailedError
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.run.repair import repair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from millstream.app import App

Kind = Literal["delete", "empty", "cut", "flip", "garbage"]
Outcome = Literal["harmless", "repaired", "refused", "stuck", "SILENTLY WRONG"]

KINDS: tuple[Kind, ...] = ("delete", "empty", "cut", "flip", "garbage")
OUTCOMES: tuple[Outcome, ...] = ("harmless", "repaired", "refused", "stuck", "SILENTLY WRONG")

_MARKS = ["_origin", "_position", "_verdict"]
_DIGITS = 9
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


@dataclass(frozen=True, slots=True)
class Finished:
    """A home that has run, and input that it has not read yet."""

    app: App
    home: Home


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a damaged home."""

    cases: tuple[Case, ...]
    outcome: Outcome
    detail: str = ""

    def __str__(self) -> str:
        names = " and ".join(case.name for case in self.cases)
        return f"{self.outcome:<14}  {names}{self.detail and f': {self.detail}'}"


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


class Judge:
    """Tells what becomes of a damaged home, by what an undamaged one comes to."""

    def __init__(self, finished: Finished, place: Path) -> None:
        self._finished, self._place = finished, place
        twin = self._copy("twin")
        finished.app.run(home=twin.path, once=True, fail_fast=True)
        self.expected = contents(twin)
        self._known: dict[str, list[str]] = {}

    def judge(self, *cases: Case, repairs: bool = True) -> Verdict:
        """Damage a copy, repair it, run it on, and look at what it holds."""
        home, done = self._copy("damaged"), ""
        for case in cases:
            case.inflict(home)
        try:
            if repairs:
                remedies = repair(self._finished.app.graph, home, agreed=True).remedies
                done = "; ".join(remedy.what for remedy in remedies)
            wrong = self._run(home)
        except Exception as error:
            return Verdict(cases, _refusal(error), str(error).partition("\n")[0])
        if wrong:
            return Verdict(cases, "SILENTLY WRONG", f"in {', '.join(wrong)}")
        return Verdict(cases, "repaired" if done else "harmless", done)

    def _run(self, home: Home) -> list[str]:
        """Run a home on; name the tables that hold something else then than the undamaged one."""
        # Many ways of damage come to the same home once it is repaired.
        mark = _fingerprint(home)
        if mark not in self._known:
            self._finished.app.run(home=home.path, once=True, fail_fast=True)
            held = contents(home)
            wrong = [name for name in self.expected if held.get(name) != self.expected[name]]
            balanced = read_ledger(home).is_balanced
            self._known[mark] = wrong or ([] if balanced else ["the ledger"])
        return self._known[mark]

    def _copy(self, name: str) -> Home:
        home = Home.at(self._place / name)
        shutil.rmtree(home.path, ignore_errors=True)
        shutil.copytree(self._finished.home.path, home.path)
        return home


def sweep(
    make: Callable[[Path], Finished],
    place: Path,
    *,
    number: int | None = None,
    seed: int = 0,
    repairs: bool = True,
    out: Callable[[str], None] = print,
) -> Counter[Outcome]:
    """Go through the cases, tell the outcome of each, and count them.

    Args:
        make: Makes a home that has run, in a folder.
        place: An empty folder.
        number: How many cases to take; all if None.
        seed: Which ones, then.
        repairs: Whether to repair before the run; if not, the run must notice the damage.
        out: Told of every case.
    """
    finished = make(place)
    found = cases(finished.home)
    found = found if number is None else chosen(found, number, seed)
    judge, counts, since = Judge(finished, place), Counter[Outcome](), time.monotonic()
    for done, case in enumerate(found, start=1):
        verdict = judge.judge(case, repairs=repairs)
        counts[verdict.outcome] += 1
        out(f"{done:>4}/{len(found)} {time.monotonic() - since:6.0f} s  {verdict}")
    out(", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]))
    return counts


def contents(home: Home) -> Mapping[str, Counter[Any]]:
    """Read what every table holds, in no order; of a landing, which line has which verdict."""
    held = {}
    for name in home.tables:
        columns = _MARKS if home.is_landing(name) else None
        rows = DeltaTable(str(home.table(name))).to_pyarrow_table(columns=columns).to_pylist()
        held[name] = Counter(str(_exact(row)) for row in rows)
    return held


def _refusal(error: Exception) -> Outcome:
    is_plain = isinstance(error, MillstreamError) and not isinstance(error, SparkFailedError)
    return "refused" if is_plain else "stuck"


def _fingerprint(home: Home) -> str:
    """Sum up all that a run goes on from."""
    digest = hashlib.sha256()
    for folder in ("checkpoints", "tables"):
        for file in sorted(path for path in (home.path / folder).rglob("*") if path.is_file()):
            digest.update(f"{_within(home, file)}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


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


def _exact(value: Any) -> Any:
    # The last digits of a floating sum depend on the order of addition.
    if isinstance(value, float):
        return f"{value:.{_DIGITS}e}"
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return value
