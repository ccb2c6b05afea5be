"""Pictures of the console while its app runs: every page, light and dark, and on a phone.

`python -m tests.console.pictures FOLDER MINUTES [KIND-PAGE…]` runs tests/resources/fleet.py for
some minutes and writes them into a folder: all, or those that are named, such as `dark-overview`.
Those in docs/images are made so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.console.browser import RunningConsole, chromium, go, page_of, running_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Page

APP = Path(__file__).parents[1] / "resources" / "fleet.py"
PER_TEN_SECONDS = "SELECT window, vehicle, speed FROM per_minute WHERE vehicle IN ('v01', 'v07')"
PAGES = {
    "overview": "/",
    "dataset": "/dataset/clean?range=5m",
    "state-rows": "/dataset/per_minute?range=5m",
    "versions": "/dataset/per_minute?tab=versions&range=5m",
    "schema": "/dataset/readings?tab=schema&range=5m",
    "set-aside": "/dataset/readings?tab=quality&range=5m",
    "why": "/dataset/per_minute?tab=why&range=5m",
    "code": "/dataset/clean?tab=code&range=5m",
    "quality": "/quality",
    "ledger": "/ledger",
    "alerts": "/alerts",
    "served": "/served?of=latest&key.vehicle=v07",
    "state": "/state",
    "storage": "/storage",
    "sql": "/sql?as=line&q=" + quote(PER_TEN_SECONDS),
    "runs": "/runs",
    "settings": "/settings",
}
SIZES = {"light": (1360, 900), "dark": (1360, 900), "phone": (390, 844), "tablet": (900, 1100)}


def draw(page: Page, name: str, path: str, folder: Path, kind: str) -> None:
    """Open a page and write its picture."""
    go(page, path)
    if name == "versions":
        page.get_by_role("button", name="Show the difference").click()
        page.wait_for_selector("#difference tbody tr, #difference .problem", timeout=60_000)
    if name == "sql":
        page.get_by_role("button", name="Run").click()
        page.wait_for_selector("#answer .uplot canvas, #answer .problem", timeout=60_000)
    if name == "served":
        page.wait_for_selector(".facts")
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(500)
    page.screenshot(path=folder / f"{name}-{kind}.png", full_page=True)


def main(folder: Path, minutes: float, chosen: Sequence[str]) -> None:
    """Run the app, and write the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        shutil.copy(APP, place / "app.py")
        run = [sys.executable, "-m", "millstream.cli", "run", "app.py", "--home", "home"]
        pipes: Any = {"stdout": subprocess.DEVNULL}
        with subprocess.Popen([*run, "--no-console"], cwd=place, **pipes) as driver:
            try:
                while not (place / "home" / "tables" / "busiest").exists():
                    time.sleep(1)
                time.sleep(minutes * 60)
                with running_console(place, "app.py", "--home", "home") as console:
                    write(console, folder, chosen)
            finally:
                driver.terminate()


def write(console: RunningConsole, folder: Path, chosen: Sequence[str]) -> None:
    with chromium() as browser:
        for kind, (width, height) in SIZES.items():
            pages = {name: path for name, path in PAGES.items() if is_chosen(kind, name, chosen)}
            if not pages:
                continue
            theme: Any = "dark" if kind == "dark" else "light"
            with page_of(browser, console, theme=theme, width=width, height=height) as (page, _):
                for name, path in pages.items():
                    draw(page, name, path, folder, kind)


def is_chosen(kind: str, name: str, chosen: Sequence[str]) -> bool:
    return not chosen or f"{kind}-{name}" in chosen


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
    sys.stdout.flush()
    os._exit(0)
