"""What watching costs: rows a second with history, console and five browsers, and with none."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.console.browser import running_console

from bench.data import put
from bench.history import WANTED, app_of, recording_nothing
from bench.memory import processor_s
from millstream.lake.log import commits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
ROWS, FILES, DIFFERENT, ROUNDS = (
    30_000,
    int(os.environ.get("FILES", "100")),
    5,
    int(os.environ.get("ROUNDS", "3")),
)
PAGES = ("/", "/dataset/silver", "/quality", "/ledger", "/")
"""What the five look at."""
UNMEASURED = 0.2
"""The first part of a run, in which Spark and pages are still starting."""
_SHOWN_WITHIN_S = 2.0


@dataclass(frozen=True)
class Cost:
    """The steady part of a run: rows a second, and processor s for a million rows, by whom."""

    rate: float
    parts: dict[str, float]
    delays: list[float] = field(default_factory=list)
    """Seconds from a commit until each page has received it and is about to paint it."""


@dataclass
class Watchers:
    """The processes that look at a run."""

    console: int = 0
    browsers: subprocess.Popen[str] | None = None

    def used(self) -> dict[str, float]:
        """Processor seconds by whom, so far."""
        console = processor_s(self.console) if self.console else 0.0
        browsers = processor_s(self.browsers.pid) if self.browsers else 0.0
        driver = processor_s(os.getpid()) - console - browsers
        return {"driver": driver, "console": console, "browsers": browsers}

    def received(self) -> list[Any]:
        """End the browsers, and return what each page received and when."""
        if self.browsers is None:
            return []
        printed, _ = self.browsers.communicate("end\n", 120)
        return list(json.loads(printed))


@contextmanager
def watching(home: Path, *, with_pages: bool) -> Iterator[Watchers]:
    """Serve a home as a run does, and look at it from five browsers."""
    if not with_pages:
        yield Watchers()
        return
    of_run = ("--of-run", str(os.getpid()))
    with running_console(home.parent, "--home", str(home), *of_run) as console:
        command = [sys.executable, "-m", "bench.browsers", console.url, console.token, *PAGES]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as browsers:
            assert browsers.stdout is not None
            assert browsers.stdout.readline() == "drawn\n"
            yield Watchers(console.pid, browsers)


def cost(folder: Path, home: Path, *, with_pages: bool = False) -> Cost:
    """Land each file as a batch of its own, and filter it into a table."""
    running = app_of(folder).open({"home": home, "once": True, "fail_fast": True})
    with watching(home, with_pages=with_pages) as watchers:
        steady: list[Any] = []
        first = home / "tables" / "bronze" / "_delta_log" / f"{int(FILES * UNMEASURED):020d}.json"

        def wait() -> None:
            while not first.exists():
                time.sleep(0.02)
            steady.append((time.monotonic(), watchers.used(), read_so_far(home)))

        waiting = threading.Thread(target=wait)
        waiting.start()
        running.serve()
        ended, used = time.monotonic(), watchers.used()
        waiting.join()
        running.raise_if_stopped_for_good()
        delays = shown_after(home, watchers.received())
    [(began, before, rows)] = steady
    left = ROWS * FILES - rows
    parts = {name: (used[name] - before[name]) / left * 1e6 for name in used}
    return Cost(left / (ended - began), parts, delays)


def read_so_far(home: Path) -> int:
    """Count the rows that are landed."""
    return next(c.facts.totals["input"] for c in commits(home / "tables" / "bronze") if c.facts)


def shown_after(home: Path, received: list[Any]) -> list[float]:
    """Say how long after each commit of the steady part each page had it."""
    delays = []
    for name in ("bronze", "silver"):
        batches = [
            (commit.facts.batch, commit.at.timestamp())
            for commit in commits(home / "tables" / name)
            if commit.is_batch and commit.facts
        ]
        for batch, at in batches:
            for page in received:
                came = [painted / 1000 for _, painted, shown in page if shown[name] >= batch]
                delays.append(min(came, default=float("inf")) - at)
    return delays


def main() -> None:
    lanes: dict[str, Callable[[Path, Path], Cost]] = {
        "nothing": recording_nothing(cost),
        "history": cost,
        "five browsers": lambda folder, home: cost(folder, home, with_pages=True),
    }
    found: dict[str, list[Cost]] = {name: [] for name in lanes}
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        folder = place / "in"
        folder.mkdir()
        for number in range(DIFFERENT):
            put(folder, number, ROWS)
        for number in range(DIFFERENT, FILES):
            os.link(folder / f"{number % DIFFERENT:06d}.json", folder / f"{number:06d}.json")
        cost(folder, place / "warm")
        for turn in range(ROUNDS):
            for name in lanes if turn % 2 else reversed(lanes):
                found[name].append(lanes[name](folder, place / f"{name}-{turn}"))
                rate, parts = found[name][-1].rate, found[name][-1].parts
                print(f"{name:>14} {rate:9,.0f} rows/s, processor s:", parts, flush=True)
    report = report_of(found)
    print(json.dumps(report, indent=2))
    (HERE / "results" / "console.json").write_text(json.dumps(report, indent=2) + "\n")


def report_of(found: dict[str, list[Cost]]) -> dict[str, Any]:
    """Sum up: medians of all turns."""
    rates = {name: statistics.median(c.rate for c in costs) for name, costs in found.items()}
    delays = sorted(delay for c in found["five browsers"] for delay in c.delays)
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "browsers": len(PAGES),
        "rows/s": {name: round(rate) for name, rate in rates.items()},
        "ratio": {name: round(rate / rates["nothing"], 3) for name, rate in rates.items()},
        "wanted at least": WANTED,
        "processor s per million rows": {
            name: {
                part: round(statistics.median(c.parts[part] for c in costs), 2)
                for part in costs[0].parts
            }
            for name, costs in found.items()
        },
        "s from a commit to a page that shows it": {
            "median": round(statistics.median(delays), 2),
            "99 %": round(delays[int(len(delays) * 0.99)], 2),
            "most": round(delays[-1], 2),
            f"within {_SHOWN_WITHIN_S:g} s": round(
                sum(delay <= _SHOWN_WITHIN_S for delay in delays) / len(delays), 3
            ),
        },
    }


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
