"""What watching costs: rows a second with history, console and five browsers, and with none."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.console.browser import chromium, go, page_of, running_console

from bench.data import put
from bench.history import FILES, WANTED, Cost, cost, cost_without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    Side = tuple[list[Cost], Callable[[Path, Path, int], Cost], str]

HERE = Path(__file__).parent
ROWS, ROUNDS = 30_000, 5
PAGES = ("/", "/dataset/silver", "/quality", "/ledger", "/")
"""What the five look at."""


@contextmanager
def watched(home: Path, browser: Browser) -> Iterator[None]:
    """Serve a home, and look at it from five browsers."""
    with running_console(home.parent, "--home", str(home)) as console, ExitStack() as stack:
        for place in PAGES:
            page, _ = stack.enter_context(page_of(browser, console))
            go(page, place)
        yield


def modest(place: Path) -> Path:
    """Return a browser that takes only what processors have left, as one elsewhere takes none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    command = place / "chromium"
    command.write_text(f'#!/bin/sh\nexec nice -n 19 "{found}" "$@"\n')
    command.chmod(0o700)
    return command


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary, ExitStack() as stack:
        place = Path(temporary)
        browser = stack.enter_context(chromium(modest(place)))
        folder = place / "in"
        folder.mkdir()
        for number in range(FILES):
            put(folder, number, ROWS)
        for number in range(2):
            cost(folder, place / f"warm-{number}", ROWS)
        on, off = list[Cost](), list[Cost]()
        looked_at = partial(cost, beside=partial(watched, browser=browser))
        for turn in range(ROUNDS):
            sides: list[Side] = [(off, cost_without, "off"), (on, looked_at, "on")]
            for costs, measure, name in sides if turn % 2 else reversed(sides):
                costs.append(measure(folder, place / f"{name}-{turn}", ROWS))
                print(name, costs[-1], flush=True)
    report: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "browsers": len(PAGES),
        "rows/s watched": round(statistics.median(c.rate for c in on)),
        "rows/s with nothing recorded": round(statistics.median(c.rate for c in off)),
        "wanted at least": WANTED,
    }
    report["ratio"] = round(report["rows/s watched"] / report["rows/s with nothing recorded"], 3)
    print(report)
    (HERE / "results" / "console.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
