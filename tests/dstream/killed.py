"""Kill the driver of a stateful windowed count again and again, and count what is wrong.

    python -m tests.dstream.killed --kills 20 --engine ours
    python -m tests.dstream.killed --kills 20 --engine pyspark.streaming

Files of words arrive all the time. At the end every word that arrived is in one batch, the window
at each batch is what the batches in it had, and the totals are what arrived.
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
    from collections.abc import Iterator, Mapping

WORDS = ["to", "be", "or", "not", "that", "is", "the", "question"]
FILE_EVERY_S = 0.25
ROWS = 200
START_WITHIN_S = 120
GIVEN_UP_AFTER_S = 60
LIVES_S = (0.5, 4.0)
RESULTS = Path(__file__).parents[2] / "bench/results"


class Feed:
    """Moves files of words into the folder, and counts what it has moved."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._dice = folder, random.Random(seed)
        self.sent: Counter[str] = Counter()
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
            draft.write_text("".join(f"{word}\n" for word in words))
            draft.replace(self._folder / f"{number:06d}.txt")
            self.sent.update(words)
            number += 1


def trial(engine: str, kills: int, seed: int) -> dict[str, Any]:
    """Run the program, kill it so many times, let it finish and judge its tables."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "in").mkdir()
        feed: Feed | None = None
        for kill in range(kills + 1):
            with driver(engine, folder) as process:
                feed = feed or Feed(folder / "in", seed)
                if kill < kills:
                    time.sleep(dice.uniform(*LIVES_S))
                    continue
                feed.stop()
                wait_until_quiet(folder / "counts.db", feed.sent.total())
            assert process.poll() is not None
        assert feed is not None
        return {"engine": engine, "kills": kills, **judged(folder / "counts.db", feed.sent)}


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
    given = parser.parse_args()
    found = trial(given.engine, given.kills, given.seed)
    print(json.dumps(found, indent=2))  # noqa: T201
    file = RESULTS / "dstream-killed.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, given.engine: found}, indent=2) + "\n")
    wrong = [found[name] for name in found if name.startswith(("rows lost", "rows twice", "off"))]
    if given.engine == "ours" and (any(wrong) or found["windows wrong"]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
