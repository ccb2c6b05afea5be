"""A console as a process, and pages of it in a real browser that notes what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from millstream.settings import TOKEN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from playwright.sync_api import Browser, Page, Response

FLAGS = (
    *("--no-sandbox", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage"),
)
AXE = Path(__file__).parents[1] / "resources" / "axe" / "axe.min.js"
READY = "main[data-ready]"
_CHECK = """async (rules) => (await axe.run(document, {
  resultTypes: ["violations"],
  ...(rules.length ? {runOnly: rules} : {}),
})).violations"""
_FOLLOW = """href => {
  history.pushState(null, "", href);
  dispatchEvent(new Event("place"));
}"""


@dataclass(frozen=True, slots=True)
class RunningConsole:
    """`millstream console`, and where it answers."""

    folder: Path
    url: str
    token: str
    look_token: str
    pid: int = 0

    @property
    def home(self) -> Path:
        return self.folder / "home"


_DEFECT = 500


@dataclass(frozen=True, slots=True)
class Noted:
    """What went wrong in a page."""

    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


@contextmanager
def running_console(folder: Path, *words: str) -> Iterator[RunningConsole]:
    """Start `millstream console` in a folder, and end it."""
    command = [sys.executable, "-m", "millstream.cli", "console", *words, "--port", "0", "--json"]
    inherited = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    process = subprocess.Popen(
        command, cwd=folder, env=inherited, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield RunningConsole(folder, told["url"], told["token"], told["look_token"], process.pid)
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the machine's own browser."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "the tests need chromium: `make services`, or pytest --no-services"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*FLAGS])
        yield browser
        browser.close()


@contextmanager
def page_of(
    browser: Browser,
    console: RunningConsole,
    *,
    theme: Literal["light", "dark"] = "light",
    width: int = 1360,
    height: int = 900,
    token: str | None = None,
) -> Iterator[tuple[Page, Noted]]:
    """Open a page that is signed in; in the end, nothing may be wrong with it."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, accept_downloads=True
    )
    page, noted = context.new_page(), Noted()
    host = urlsplit(console.url).netloc
    page.on("console", lambda m: noted.errors.append(m.text) if m.type == "error" else None)
    defects: list[Response] = []
    page.on("response", lambda r: defects.append(r) if r.status >= _DEFECT else None)
    page.on("response", lambda r: noted.errors.append(r.url) if r.status >= _DEFECT else None)
    page.on("pageerror", lambda error: noted.errors.append(str(error)))
    page.on("request", lambda r: _note_foreign(r.url, host, noted))
    page.goto(f"{console.url}#{token or console.token}")
    page.wait_for_selector(READY)
    try:
        yield page, noted
    finally:
        for defect in defects:
            # What the console says of it is in the report of a test that fails.
            sys.stdout.write(f"{defect.status} {defect.url} {defect.text()}")
        context.close()


def _note_foreign(url: str, host: str, noted: Noted) -> None:
    if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc != host:
        noted.foreign.append(url)


def go(page: Page, path: str) -> None:
    """Open an address as a link of the page does, and wait until it is drawn."""
    page.evaluate(_FOLLOW, path)
    page.wait_for_selector(READY)


def serious(page: Page, *rules: str) -> list[str]:
    """Return what axe-core finds serious or critical on a page, by all rules or by some."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found = page.evaluate(_CHECK, [*rules])
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:160]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
