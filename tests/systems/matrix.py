"""Drivers of a store killed in every way, one after another: what the store holds in the end.

`python -m tests.systems.matrix --faults 60 --document docs/guarantees.md` for all six stores.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.document import table, write_between_marks
from tests.systems.driver import OVERTAKEN, ROWS, Log, rows_of, sink_of
from tests.systems.stores import every_row_seen_in, make_topic

from millstream.testing.kafka import Broker
from millstream.testing.postgres import PostgresServer
from millstream.testing.redis import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KINDS = {
    "delta": "Delta",
    "kafka": "Kafka, read_committed",
    "postgres": "Postgres",
    "sqlite": "SQLite",
    "redis": "Redis",
    "files": "files",
}
FAULTS = {
    "rows": "killed while it hands over rows",
    "settle": "killed before the commit",
    "written": "killed after the commit, before it is taken down",
    "moment": "killed at a random moment",
    "zombie": "paused, overtaken, woken",
}
_STARTS_WITHIN_S = 120.0
_SHOWS_WITHIN_S = 60.0
_FAR = 1_000_000


@dataclass
class Findings:
    """What came of the faults of one store."""

    faults: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    lost: int = 0
    duplicated: int = 0
    torn: int = 0
    wrong: int = 0
    stale: int = 0
    """Woken drivers that did not find that they were overtaken."""

    @property
    def is_exact(self) -> bool:
        return not (self.lost or self.duplicated or self.torn or self.wrong or self.stale)


class Trial:
    """One store, and the drivers that die on it."""

    def __init__(self, kind: str, place: str, home: Path, chance: random.Random) -> None:
        self._kind, self._place, self._home, self._chance = kind, place, home, chance
        self._epoch, self._log = 0, Log(home)
        self.findings = Findings()

    def inflict(self, fault: str) -> None:
        """Have a driver meet a fault; look at what it leaves."""
        if fault == "zombie":
            self._overtake()
        else:
            dies_at = "" if fault == "moment" else fault
            with self._driver(dies_at=dies_at) as driver:
                if fault == "moment":
                    _hear_taken(driver)
                    time.sleep(self._chance.uniform(0, 0.4))
                    driver.kill()
                driver.wait(_STARTS_WITHIN_S)
        self.findings.faults[fault] += 1
        self._look(is_end=False)

    def finish(self) -> Findings:
        """Have a driver write a few batches more and end; judge all that is there."""
        up_to = max(self._log.read("planned"), self._log.read("committed")) + 3
        with self._driver(up_to=up_to) as driver:
            assert driver.wait(_STARTS_WITHIN_S) == 0
        self.findings.batches = up_to + 1
        self._look(is_end=True)
        return self.findings

    def _overtake(self) -> None:
        with self._driver() as paused, killed_at_end(paused):
            _hear_taken(paused)
            time.sleep(self._chance.uniform(0, 0.2))
            paused.send_signal(signal.SIGSTOP)
            before = self._log.read("committed")
            with self._driver() as later, killed_at_end(later):
                until, is_paused = time.monotonic() + 8, True
                while self._log.read("committed") < before + 4:
                    assert later.poll() is None, "the later driver did not go on"
                    if is_paused and time.monotonic() > until:
                        # It was paused in a transaction, which the other has to wait for.
                        paused.send_signal(signal.SIGCONT)
                        is_paused = False
                    time.sleep(0.02)
                paused.send_signal(signal.SIGCONT)
                self.findings.stale += paused.wait(_STARTS_WITHIN_S) != OVERTAKEN

    def _driver(self, *, up_to: int = _FAR, dies_at: str = "") -> subprocess.Popen[bytes]:
        self._epoch += 1
        words = [self._kind, self._place, self._home, self._epoch, up_to, dies_at]
        command = [sys.executable, "-m", "tests.systems.driver", *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE)

    def _look(self, *, is_end: bool) -> None:
        """Count what a reader sees now that should not be there, or is missing."""
        last = self.findings.batches - 1 if is_end else self._log.read("committed")
        wanted = {row["id"] for batch in range(last + 1) for row in rows_of(batch)}
        held = self._held(wanted)
        there = Counter(number // ROWS for number, _ in held)
        self.findings.duplicated += sum(n - 1 for n in held.values())
        self.findings.torn += sum(rows < ROWS for rows in there.values())
        self.findings.wrong += sum(text != str(number // ROWS) for number, text in held)
        self.findings.lost += len(wanted - {number for number, _ in held})

    def _held(self, wanted: set[int]) -> Counter[tuple[int, str]]:
        """Read all rows; a broker may show what is committed a moment later."""
        until = time.monotonic() + (_SHOWS_WITHIN_S if self._kind == "kafka" else 0)
        while True:
            held = Counter((int(r["id"]), r["text"]) for r in every_row_seen_in(self._sink))
            if wanted <= {number for number, _ in held} or time.monotonic() > until:
                return held

    @property
    def _sink(self) -> object:
        return sink_of(self._kind, self._place)


@contextmanager
def killed_at_end(driver: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a driver whatever happens: one that is paused would never end by itself."""
    try:
        yield
    finally:
        driver.kill()


def _hear_taken(driver: subprocess.Popen[bytes]) -> None:
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"taken\n"


def tried(kind: str, place: str, home: Path, faults: Sequence[str], seed: int) -> Findings:
    """Inflict faults on the drivers of a store, one after another."""
    trial = Trial(kind, place, home, random.Random(f"{seed} {kind}"))
    for fault in faults:
        trial.inflict(fault)
    return trial.finish()


def report(found: dict[str, Findings], seed: int) -> str:
    heads = ["store", "faults", "batches", "lost", "duplicated", "torn", "wrong", "stale accepted"]
    rows = [
        [KINDS[kind], *map(str, (f.faults.total(), f.batches, f.lost, f.duplicated, f.torn,
                                 f.wrong, f.stale))]
        for kind, f in found.items()
    ]  # fmt: skip
    kinds = sum((f.faults for f in found.values()), Counter[str]())
    reported = "; ".join(f"{kinds[fault]} {FAULTS[fault]}" for fault in FAULTS if kinds[fault])
    day = datetime.now(UTC).date()
    return "\n".join([f"{day}, seed {seed}: {reported}.", "", *table(heads, rows)])


def merged(file: Path, found: dict[str, Findings]) -> dict[str, Findings]:
    """Keep findings in a file; those of stores that were not tried now stay as they were."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    reported = kept | {kind: {**vars(f), "faults": dict(f.faults)} for kind, f in found.items()}
    file.write_text(json.dumps(reported, indent=2) + "\n")
    there = {kind: reported[kind] for kind in KINDS if kind in reported}
    return {k: Findings(**{**f, "faults": Counter(f["faults"])}) for k, f in there.items()}


def place_of(kind: str, home: Path, servers: ExitStack) -> str:
    """Give the address of a new store; start its server, if it has one."""
    match kind:
        case "postgres":
            return servers.enter_context(PostgresServer()).dsn
        case "redis":
            return servers.enter_context(RedisServer()).url
        case "kafka":
            broker = servers.enter_context(Broker())
            make_topic(broker.servers, "killed")
            return f"{broker.servers}/killed"
    return str(home / "place")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stores", nargs="*", default=list(KINDS))
    parser.add_argument("--json", type=Path, help="where the findings of stores are kept")
    parser.add_argument("--document", type=Path)
    given = parser.parse_args()
    faults = [list(FAULTS)[n % len(FAULTS)] for n in range(given.faults)]
    found: dict[str, Findings] = {}
    with ExitStack() as servers, tempfile.TemporaryDirectory() as folder:
        for kind in given.stores:
            home = Path(folder) / kind
            home.mkdir()
            place = place_of(kind, home, servers)
            found[kind] = tried(kind, place, home, faults, given.seed)
            print(kind, found[kind], flush=True)  # noqa: T201
    if given.json:
        found = merged(given.json, found)
    text = report(found, given.seed)
    print(text)  # noqa: T201
    if given.document:
        write_between_marks(given.document, "stores", text)
    sys.exit(not all(f.is_exact for f in found.values()))


if __name__ == "__main__":
    main()
