"""Kill the driver of a stateful windowed count again and again, and count what is wrong.

    python -m tests.dstream.killed --kills 20 --engine ours
    python -m tests.dstream.killed --kills 20 --engine pyspark.streaming
    python -m tests.dstream.killed --kills 20 --engine pyspark.streaming --early

A driver dies half a second to four seconds after its first batch with rows; with --early, after its
start, so that some die before their first batch. Files of words arrive all the time. At the end
every word that arrived is in one batch, the window at each batch is what the batches in it had, and
the totals are what arrived.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.dstream.counting import ENGINES, WINDOW_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WORDS = ["to", "be", "or", "not", "that", "is", "the", "question"]
FILE_EVERY_S = 0.25
ROWS = 200
START_WITHIN_S = 300
GIVEN_UP_AFTER_S = 60
BATCH_WITHIN_S = 60
LIVES_S = (0.5, 4.0)
RESULTS = Path(__file__).parents[2] / "bench/results"


class Feed:
    """Moves files of words into the folder, and counts what it has moved."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._dice = folder, random.Random(seed)
        self.sent: Counter[str] = Counter()
        self.at_ms: dict[str, int] = {}
        """When each file was there, by the word that it alone has."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _send(self) -> None:
        number = 0
        while not self._over.wait(FILE_EVERY_S):
            words = self._dice.choices(WORDS, k=ROWS)
            draft = self._folder / f".{number}"
            # A word of its own shows what became of the file.
            words[-1] = file_word(number)
            draft.write_text("".join(f"{word}\n" for word in words))
            draft.replace(self._folder / f"{number:06d}.txt")
            self.at_ms[words[-1]] = time.time_ns() // 1_000_000
            self.sent.update(words)
            number += 1


def file_word(number: int) -> str:
    """The word that one file has and no other."""
    return f"file-{number:06d}"


def trial(engine: str, kills: int, seed: int, *, early: bool) -> dict[str, Any]:
    """Run the program, kill it so many times, let it finish and judge its tables."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        (folder / "in").mkdir()
        feed: Feed | None = None
        up_ms: list[tuple[int, int]] = []
        for kill in range(kills + 1):
            began_ms = _now_ms()
            with driver(engine, folder) as process:
                up_ms.append((began_ms, _now_ms()))
                feed = feed or Feed(folder / "in", seed)
                if kill < kills:
                    if not early:
                        wait_for_a_batch(folder / "counts.db", up_ms[-1][1])
                    time.sleep(dice.uniform(*LIVES_S))
                    continue
                feed.stop()
                wait_until_quiet(folder / "counts.db", feed.sent.total())
            assert process.poll() is not None
        assert feed is not None
        found = {"engine": engine, "kills": kills, **judged(folder / "counts.db", feed.sent)}
        return found | {"files": fates(folder / "counts.db", feed.at_ms, up_ms)}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def fates(
    database: Path, at_ms: Mapping[str, int], up_ms: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """Which files are lost or counted twice, and when they came: in which life of the driver."""
    rows = read(database, "SELECT word, sum(n) FROM batches WHERE word LIKE 'file-%' GROUP BY 1")
    counted = dict(rows)

    def phase(name: str) -> str:
        life = max(n for n, (began, _) in enumerate(up_ms) if began <= at_ms[name] or n == 0)
        return "while a driver starts" if at_ms[name] < up_ms[life][1] else "while a driver runs"

    lost = Counter(phase(name) for name in at_ms if not counted.get(name))
    twice = Counter(phase(name) for name in at_ms if counted.get(name, 0) > 1)
    return {"sent": len(at_ms), "lost that came": dict(lost), "twice that came": dict(twice)}


@contextmanager
def driver(engine: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the program, and kill it with all that it started when the block ends."""
    (folder / "started").unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.dstream.counting", engine, str(folder)]
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        until = time.monotonic() + START_WITHIN_S
        while not (folder / "started").exists():
            assert process.poll() is None, (folder / "output").read_text()[-3000:]
            assert time.monotonic() < until
            time.sleep(0.05)
        yield process
        assert process.poll() is None, (folder / "output").read_text()[-3000:]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_a_batch(database: Path, since_ms: int) -> None:
    """Wait until a batch of this life has rows, but not for ever: it may have lost them."""
    until = time.monotonic() + BATCH_WITHIN_S
    while time.monotonic() < until:
        newest = read(database, "SELECT max(ms) FROM batches")
        if newest and (newest[0][0] or 0) >= since_ms:
            return
        time.sleep(0.1)


def wait_until_quiet(database: Path, sent: int) -> None:
    """Wait until all that arrived has left the window; or long enough, if something is lost."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < (2 * WINDOW_S if last == sent else GIVEN_UP_AFTER_S):
        time.sleep(0.5)
        counts = read(database, "SELECT sum(n) FROM batches")
        now = counts[0][0] or 0 if counts else 0
        if now != last:
            last, since = now, time.monotonic()


def read(database: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(database, timeout=30)
    try:
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def judged(database: Path, sent: Mapping[str, int]) -> dict[str, Any]:
    """Compare the tables with what arrived."""
    batches = read(database, "SELECT ms, word, n FROM batches")
    windows = read(database, "SELECT ms, word, n FROM windows")
    totals = dict(read(database, "SELECT word, n FROM totals"))
    counted: Counter[str] = Counter()
    for _, word, n in batches:
        counted[word] += n
    once = Counter({(ms, word): n for ms, word, n in batches})
    wrong = sum(
        n != sum(once[at, word] for at in range(ms - (WINDOW_S - 1) * 1000, ms + 1, 1000))
        for ms, word, n in windows
    )
    return {
        "rows sent": sum(sent.values()),
        "rows lost": sum(max(0, n - counted[word]) for word, n in sent.items()),
        "rows twice": sum(max(0, counted[word] - n) for word, n in sent.items()),
        "rows of a batch written twice": len(batches) - len(once),
        "windows": len(windows),
        "windows wrong": wrong,
        "windows written twice": len(windows) - len({(ms, word) for ms, word, _ in windows}),
        "off in the totals": sum(abs(n - totals.get(word, 0)) for word, n in sent.items()),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=ENGINES, default="ours")
    parser.add_argument("--early", action="store_true", help="kill soon after the start")
    given = parser.parse_args()
    found = trial(given.engine, given.kills, given.seed, early=given.early)
    print(json.dumps(found, indent=2))  # noqa: T201
    file = RESULTS / "dstream-killed.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    name = f"{given.engine}, early" if given.early else given.engine
    file.write_text(json.dumps({**known, name: found}, indent=2) + "\n")
    wrong = [found[name] for name in found if name.startswith(("rows lost", "rows twice", "off"))]
    if given.engine == "ours" and (any(wrong) or found["windows wrong"]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
