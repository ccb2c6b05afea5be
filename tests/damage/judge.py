"""What became of a damaged home, by what an undamaged one comes to."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from deltalake import DeltaTable

from millstream.errors import MillstreamError
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.repair.repair import repair
from millstream.testing.comparable import exact

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.damage.case import Case

    from millstream.app import App

Outcome = Literal["harmless", "repaired", "refused", "stuck", "SILENTLY WRONG"]
OUTCOMES: tuple[Outcome, ...] = ("harmless", "repaired", "refused", "stuck", "SILENTLY WRONG")

_MARKS = ["_origin", "_position", "_verdict"]


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


def contents(home: Home) -> Mapping[str, Counter[Any]]:
    """Read what every table holds, in no order; of a landing, which line has which verdict."""
    held = {}
    for name in home.tables:
        columns = _MARKS if home.is_landing(name) else None
        rows = DeltaTable(str(home.table(name))).to_pyarrow_table(columns=columns).to_pylist()
        held[name] = Counter(exact(row) for row in rows)
    return held


def _refusal(error: Exception) -> Outcome:
    is_plain = isinstance(error, MillstreamError) and error.code != "SPARK_FAILED"
    return "refused" if is_plain else "stuck"


def _fingerprint(home: Home) -> str:
    """Sum up all that a run goes on from."""
    digest = hashlib.sha256()
    for folder in ("checkpoints", "tables"):
        for file in sorted(path for path in (home.path / folder).rglob("*") if path.is_file()):
            digest.update(f"{file.relative_to(home.path)}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()
