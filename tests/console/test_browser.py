"""The web page in a real browser, over a home that a real run has written."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from deltalake import DeltaTable
from playwright.sync_api import expect
from tests.console.browser import (
    READY,
    Noted,
    RunningConsole,
    chromium,
    go,
    page_of,
    running_console,
    serious,
)
from tests.console.fleet import commit_batch, unpack

from millstream.alert.deliveries import Deliveries
from millstream.lake.failed_queries import Trouble, record_troubles
from millstream.lake.home import Home
from millstream.lake.log import facts_of
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord, EventRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.services, pytest.mark.slow]

PICTURES = Path(__file__).parents[2] / "build" / "screenshots"
PAGES = {
    "overview": "/",
    "dataset": "/dataset/clean?range=7d",
    "rows": "/dataset/per_minute?version=20&range=7d",
    "versions": "/dataset/per_minute?tab=versions&earlier=18&later=20&range=7d",
    "schema": "/dataset/readings?tab=schema&range=7d",
    "set-aside": "/dataset/readings?tab=quality&range=7d",
    "why": "/dataset/per_minute?tab=why&range=7d",
    "code": "/dataset/clean?tab=code&range=7d",
    "quality": "/quality",
    "ledger": "/ledger",
    "alerts": "/alerts",
    "served": "/served?of=latest&key.vehicle=v07",
    "state": "/state",
    "storage": "/storage",
    "sql": "/sql?q=" + quote("SELECT vehicle, count(*) AS n FROM clean GROUP BY vehicle"),
    "runs": "/runs",
    "settings": "/settings",
}
ON_A_PHONE = ("overview", "dataset", "set-aside", "alerts", "sql")
LIVE, LIVE_WITHIN_S = "html[data-live=true]", 2.0

_HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    folder = tmp_path_factory.mktemp("fleet")
    unpack(folder)
    with running_console(folder, "app.py", "--home", "home") as console:
        _record_history(Home.at(console.home))
        yield console


@pytest.fixture
def driver(console: RunningConsole) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the home as a driver does."""
    hold = (
        "import sys; from millstream.lake.home import Home; from millstream.lake.lease import "
        "Lease; lease = Lease.acquire(Home.at(sys.argv[1])); print('held', flush=True); "
        "sys.stdin.read()"
    )
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", hold, str(console.home)], **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def opened(browser: Browser, console: RunningConsole) -> Iterator[Page]:
    with page_of(browser, console) as (page, noted):
        yield page
        assert noted == Noted()


def _record_history(home: Home) -> None:
    """Write what a driver records: ten minutes of batches, and a few events."""
    now = datetime.now(UTC)
    records: list[Any] = []
    for name in ("readings", "clean", "per_minute", "busiest", "low_fuel"):
        for number in range(60):
            at = now - timedelta(seconds=10 * (60 - number))
            rows = 280 + 40 * (number % 7)
            phases = {"addBatch": 310, "walCommit": 20, "queryPlanning": 45}
            records.append(
                BatchRecord(
                    name,
                    number,
                    at,
                    duration_ms=420 + 13 * (number % 11),
                    phases=phases,
                    input=rows,
                    output=rows - number % 5,
                    counts={"ok": rows - number % 5, "malformed": number % 5},
                    complete_to=at - timedelta(seconds=20),
                    greatest_event_time=at - timedelta(seconds=1),
                    state_rows=900 + number,
                    state_bytes=90_000 + 1000 * number,
                    behind_rows=10 * (number % 4),
                )
            )
    records.append(EventRecord(now - timedelta(minutes=4), "maintained", "clean", "3 files"))
    writer = HistoryWriter(home.history)
    assert writer.write(records)
    writer.close()


def test_the_first_paint_has_the_answer_and_every_dataset(opened: Page) -> None:
    expect(opened.locator("h1")).to_have_text("fleet")
    expect(opened.locator(".title .state")).to_contain_text("nothing runs")
    for name in ("readings", "clean", "per_minute", "busiest", "latest", "low_fuel"):
        expect(opened.locator(f'.node[data-name="{name}"]')).to_have_count(1)
        expect(opened.locator("table").get_by_role("link", name=name, exact=True)).to_have_count(1)
    expect(opened.locator(".tile").first).to_contain_text("Rows in")


def test_the_token_leaves_the_address_and_the_link_works_without_it(
    browser: Browser, console: RunningConsole
) -> None:
    with page_of(browser, console) as (page, _):
        assert console.token not in page.url
        assert page.evaluate("document.cookie") == ""
        page.reload()
        page.wait_for_selector(READY)
        cookies = page.context.cookies()
        page.context.clear_cookies()
        page.goto(console.url)
        expect(page.locator("main")).to_contain_text("This page needs a link")

    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_drawn_without_an_error_and_is_accessible(
    browser: Browser, console: RunningConsole, theme: Any
) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[str]] = {}
    with page_of(browser, console, theme=theme) as (page, noted):
        for name, path in PAGES.items():
            go(page, path)
            if name == "sql":
                page.get_by_role("button", name="Run").click()
                page.wait_for_selector("#answer table")
            if name == "served":
                page.wait_for_selector(".facts")
            expect(page.locator("#difference .empty")).to_have_count(0)
            page.screenshot(path=PICTURES / f"{name}-{theme}.png", full_page=theme == "light")
            found[name] = serious(page, *(["color-contrast"] if theme == "dark" else []))

    assert {name: faults for name, faults in found.items() if faults} == {}
    assert noted == Noted()


def test_a_batch_is_shown_within_two_seconds(opened: Page, console: RunningConsole) -> None:
    total = facts_of(Home.at(console.home).table("clean")).totals["written"]
    cell = opened.locator("tr", has=opened.get_by_role("link", name="clean", exact=True))
    opened.wait_for_selector(LIVE)

    commit_batch(Home.at(console.home), "clean", rows=5)
    began = time.monotonic()
    expect(cell.locator(".parts")).to_have_attribute("title", re.compile(f"^{total + 5} ok"))

    assert time.monotonic() - began < LIVE_WITHIN_S


def test_a_paused_page_keeps_what_it_shows_until_it_goes_on(
    opened: Page, console: RunningConsole
) -> None:
    home = Home.at(console.home)
    total = facts_of(home.table("clean")).totals["written"]
    cell = opened.locator("tr", has=opened.get_by_role("link", name="clean", exact=True))
    parts = cell.locator(".parts")
    opened.wait_for_selector(LIVE)
    opened.get_by_role("button", name="Live").click()

    # The page gets the news; while it is paused, it asks for nothing.
    with opened.expect_event("console", lambda message: message.text == "changed"):
        opened.evaluate("new EventSource('/api/events').onmessage = () => console.log('changed')")
    with opened.expect_event("console", lambda message: message.text == "changed"):
        commit_batch(home, "clean", rows=3)
    expect(parts).to_have_attribute("title", re.compile(f"^{total} ok"))
    opened.get_by_role("button", name="Paused").click()

    expect(parts).to_have_attribute("title", re.compile(f"^{total + 3} ok"))


def test_a_page_that_nobody_looks_at_asks_for_nothing(
    opened: Page, console: RunningConsole
) -> None:
    home = Home.at(console.home)
    total = facts_of(home.table("clean")).totals["written"]
    cell = opened.locator("tr", has=opened.get_by_role("link", name="clean", exact=True))
    parts = cell.locator(".parts")
    opened.wait_for_selector(LIVE)
    opened.evaluate(_HIDE, True)

    with opened.expect_event("console", lambda message: message.text == "changed"):
        opened.evaluate("new EventSource('/api/events').onmessage = () => console.log('changed')")
    with opened.expect_event("console", lambda message: message.text == "changed"):
        commit_batch(home, "clean", rows=2)
    expect(parts).to_have_attribute("title", re.compile(f"^{total} ok"))
    opened.evaluate(_HIDE, False)

    expect(parts).to_have_attribute("title", re.compile(f"^{total + 2} ok"))


def test_batches_neither_repeat_the_query_of_rows_nor_take_away_what_is_typed(
    opened: Page, console: RunningConsole
) -> None:
    asked = list[str]()
    opened.on("request", lambda request: asked.append(request.url))
    go(opened, "/dataset/clean")
    expect(opened.locator("#panel tbody tr").first).to_be_visible()
    field = opened.get_by_label("Any version")
    field.fill("3")
    opened.wait_for_selector(LIVE)

    for _ in range(2):
        with opened.expect_response("**/api/overview"):
            commit_batch(Home.at(console.home), "clean", rows=1)

    expect(field).to_have_value("3")
    assert sum("/rows" in url for url in asked) == 1


def test_the_page_of_storage_agrees_with_the_disk(opened: Page, console: RunningConsole) -> None:
    home = Home.at(console.home)
    sizes = [file.stat().st_size for file in home.table("clean").rglob("*") if file.is_file()]
    files = DeltaTable(str(home.table("clean"))).file_uris()
    now = sum(Path(file).stat().st_size for file in files)
    go(opened, "/storage")

    row = opened.locator("tr", has=opened.get_by_role("link", name="clean", exact=True)).first
    for bytes_ in (sum(sizes), now):
        text = f"{bytes_:,} bytes".replace(",", "\u202f")
        expect(row.locator(f'[title="{text}"]')).to_have_count(1)
    expect(row.locator(f'[title="{len(sizes)}"]')).to_have_count(1)
    expect(opened.locator(".tile").first).to_contain_text("On disk")


def test_a_failing_query_turns_its_node_red_with_the_reason(
    opened: Page, console: RunningConsole, driver: subprocess.Popen[str]
) -> None:
    home = Home.at(console.home)
    node = opened.locator('.node[data-name="per_minute"]')
    expect(node).to_have_attribute("data-level", "ok")
    what, fix = "your function raised <b>ZeroDivisionError</b>", "see line 44"
    record_troubles(
        home,
        ["per_minute"],
        {"per_minute": Trouble("failed", "USER_CODE", what, fix, "app.py", 44)},
    )

    expect(node).to_have_attribute("data-level", "bad")
    expect(opened.locator(".title .state")).to_contain_text("per_minute is failing")
    attention = opened.locator(".card", has_text="Needs attention")
    expect(attention).to_contain_text(what)
    expect(attention).to_contain_text("app.py:44")
    expect(attention).to_contain_text(fix)
    record_troubles(home, ["per_minute"], {})
    expect(node).to_have_attribute("data-level", "ok")


def test_a_dead_driver_leaves_a_page_that_can_be_read(
    opened: Page, console: RunningConsole, driver: subprocess.Popen[str]
) -> None:
    expect(opened.locator(".title .sub")).to_contain_text(f"pid {driver.pid}")

    driver.send_signal(signal.SIGKILL)
    driver.wait()
    opened.reload()
    opened.wait_for_selector(READY)

    expect(opened.locator(".title .state")).to_contain_text("nothing runs")
    go(opened, "/dataset/clean?range=7d")
    expect(opened.locator(".uplot").first).to_be_visible()
    expect(opened.locator("#panel tbody tr").first).to_be_visible()


def test_a_question_is_answered_as_a_table_a_chart_and_a_file(
    opened: Page, console: RunningConsole
) -> None:
    go(opened, "/sql")
    editor = opened.get_by_role("textbox", name="SQL")
    editor.fill("SELECT vehicle, count(*) AS n FROM per_minute GROUP BY vehicle ORDER BY vehicle")
    editor.press("Control+Enter")

    rows = opened.locator("#answer tbody tr")
    expect(rows).to_have_count(24)
    expect(rows.first.locator("td").first).to_have_text("v00")
    opened.get_by_role("button", name="Bars").click()
    expect(opened.locator("#answer .hbar")).to_have_count(24)
    with opened.expect_download() as download:
        opened.get_by_role("button", name="CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0] == "vehicle,n"
    assert len(lines) == 25
    assert "q=SELECT" in opened.url
    assert "as=bar" in opened.url
    opened.goto(opened.url)
    expect(opened.locator("#answer .hbar")).to_have_count(24)


def test_a_question_over_time_is_drawn_as_lines(opened: Page, console: RunningConsole) -> None:
    go(
        opened,
        "/sql?q=" + quote("SELECT window, sum(readings) AS n FROM per_minute GROUP BY window"),
    )
    opened.get_by_role("button", name="Run").click()
    opened.get_by_role("button", name="Lines").click()

    expect(opened.locator("#answer .uplot canvas")).to_be_visible()


def test_a_question_is_completed_refused_and_cancelled(
    opened: Page, console: RunningConsole, browser: Browser
) -> None:
    with page_of(browser, console) as (page, _):
        go(page, "/sql")
        editor = page.get_by_role("textbox", name="SQL")
        offered = page.locator(".complete li").first
        editor.press_sequentially("SELECT * FROM per_")
        for _again in range(20):
            # The names of the tables may come after the first letters.
            if offered.is_visible():
                break
            page.wait_for_timeout(250)
            editor.press("Backspace")
            editor.press_sequentially("_")
        expect(offered).to_contain_text("per_minute")
        editor.press("Tab")
        expect(editor).to_have_value("SELECT * FROM per_minute")
        editor.fill("SELECT * FROM read_csv('/etc/passwd')")
        editor.press("Control+Enter")
        expect(page.locator("#answer .problem")).to_contain_text("SQL_NOT_TRANSLATED")
        editor.fill(f"SELECT count(*) FROM {', '.join(f'clean c{n}' for n in range(5))}")
        editor.press("Control+Enter")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#answer .problem")).to_contain_text("SQL_CANCELLED")


def test_a_table_is_read_at_a_version_and_two_versions_are_compared(
    opened: Page, console: RunningConsole
) -> None:
    path = str(Home.at(console.home).table("busiest"))
    earlier, later = (DeltaTable(path, version=v).to_pyarrow_table().to_pylist() for v in (10, 11))
    go(opened, "/dataset/busiest?version=10")
    shown = opened.locator("#panel tbody tr")
    expect(shown).to_have_count(len(earlier))
    assert {row["vehicle"] for row in earlier} == {
        *shown.locator("td:first-child").all_inner_texts()
    }

    opened.get_by_role("tab", name="Versions").click()
    opened.get_by_label("The earlier version").fill("10")
    opened.get_by_label("The later version").fill("11")
    opened.get_by_role("button", name="Show the difference").click()

    added = [row for row in later if row not in earlier]
    removed = [row for row in earlier if row not in later]
    expect(opened.locator("#difference")).to_contain_text(
        f"{len(added)} added, {len(removed)} removed"
    )
    expect(opened.locator("#difference tr.added")).to_have_count(len(added))
    assert "earlier=10" in opened.url


def test_rows_set_aside_are_shown_with_their_reason_and_the_bytes_that_came(
    opened: Page, console: RunningConsole
) -> None:
    go(opened, "/quality?of=readings")
    opened.get_by_label("Reason").select_option("malformed")

    first = opened.locator("section", has_text="Rows set aside").locator("tbody tr").first
    expect(first).to_contain_text("not JSON: input data was truncated")
    expect(first.locator(".raw")).to_contain_text('{"vehicle": "v')
    expect(first.locator(".raw")).to_have_attribute("title", re.compile(r"^\d+ bytes: 7b 22 76 65"))


def test_an_alert_is_silenced_audited_and_sent_again(opened: Page, console: RunningConsole) -> None:
    go(opened, "/alerts")
    opened.get_by_label("Alert", exact=True).select_option("low_fuel")
    opened.get_by_label("Only about this key, such as vehicle=v07").fill("vehicle=v07")
    opened.get_by_role("button", name="Silence", exact=True).click()

    expect(opened.locator("main")).to_contain_text("low_fuel about vehicle v07 is silenced until")
    home = Home.at(console.home)
    deliveries = Deliveries(home.alerts)
    [silence] = deliveries.silences(time.time())
    deliveries.close()
    with History.read_only(home.history) as history:
        [audited] = [e for e in history.events() if e.kind == "alerts_silenced"]
    assert (silence.alert, dict(silence.key)) == ("low_fuel", {"vehicle": "v07"})
    assert audited.detail == "low_fuel vehicle=v07 for 1 hour, in the console"
    opened.get_by_role("button", name="Send again").click()
    expect(opened.locator("main")).not_to_contain_text("is silenced until")


def test_a_link_for_looking_has_no_buttons_that_act(
    browser: Browser, console: RunningConsole
) -> None:
    with page_of(browser, console, token=console.look_token) as (page, noted):
        go(page, "/alerts")
        expect(page.locator("footer")).to_contain_text("for looking only")
        expect(page.get_by_role("button", name="Silence", exact=True)).to_have_count(0)

    assert noted == Noted()


def test_a_served_row_is_looked_up_by_its_key(opened: Page, console: RunningConsole) -> None:
    go(opened, "/served")
    opened.get_by_label("vehicle").fill("v07")
    opened.get_by_role("button", name="Look up").click()

    expect(opened.locator(".facts")).to_contain_text("v07")
    assert "key.vehicle=v07" in opened.url


def test_any_dataset_is_found_with_the_keyboard_alone(opened: Page) -> None:
    opened.keyboard.press("/")
    opened.keyboard.type("pmi")
    opened.keyboard.press("Enter")
    expect(opened.locator(".nm.large")).to_have_text("per_minute")
    opened.keyboard.press("Control+k")
    opened.keyboard.type("sett")
    opened.keyboard.press("Enter")
    expect(opened).to_have_url(re.compile("/settings$"))
    opened.keyboard.press("/")
    expect(opened.get_by_role("combobox", name="Find")).to_be_focused()
    opened.keyboard.press("Escape")
    expect(opened.get_by_role("combobox", name="Find")).to_have_count(0)


def test_the_theme_follows_the_system_until_it_is_chosen(
    browser: Browser, console: RunningConsole
) -> None:
    with page_of(browser, console, theme="dark") as (page, _):
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_role("button", name="Light theme").click()
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.reload()
        page.wait_for_selector(READY)
        kept = page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert (dark, light, kept) == ("rgb(17, 22, 27)", "rgb(246, 247, 248)", "rgb(246, 247, 248)")


def test_a_phone_shows_every_page_without_scrolling_sideways(
    browser: Browser, console: RunningConsole
) -> None:
    wide: dict[str, int] = {}
    with page_of(browser, console, width=390, height=844) as (page, noted):
        for name, path in PAGES.items():
            go(page, path)
            wide[name] = page.evaluate("document.documentElement.scrollWidth")
            if name in ON_A_PHONE:
                page.screenshot(path=PICTURES / f"{name}-phone.png", full_page=True)

    assert {name: width for name, width in wide.items() if width > 390} == {}
    assert noted == Noted()


def test_the_range_of_time_is_in_the_address_and_stays_on_the_next_page(opened: Page) -> None:
    opened.get_by_label("Range of time").select_option("6h")
    expect(opened).to_have_url(re.compile("range=6h"))
    opened.locator('.node[data-name="clean"]').click()

    expect(opened).to_have_url(re.compile("/dataset/clean.*range=6h"))
    expect(opened.locator(".charts .uplot").first).to_be_visible()


def test_nothing_in_names_values_reasons_or_errors_is_run_by_the_browser(
    browser: Browser, console: RunningConsole
) -> None:
    home, evil = Home.at(console.home), "<img src=x onerror=alert(1)><script>alert(1)</script>"
    trouble = Trouble("failed", evil, evil, evil, evil, 1)
    writer = HistoryWriter(home.history)
    writer.write([EventRecord(datetime.now(UTC), evil, "clean", evil, what=evil, fix=evil)])
    writer.close()
    record_troubles(home, ["clean"], {"clean": trouble})
    with page_of(browser, console) as (page, noted):
        expect(page.locator("body")).to_contain_text(evil)
        for path in ("/dataset/clean", "/ledger", "/runs", f"/dataset/{quote(evil, safe='')}"):
            go(page, path)
            expect(page.locator("main")).to_contain_text(evil)
        asked = f"SELECT '{evil}' AS `{evil}`"
        go(page, f"/sql?q={quote(asked)}")
        page.get_by_role("button", name="Run").click()
        expect(page.locator("#answer td")).to_have_text(evil)
        made = page.locator("main img, main script").count()
    record_troubles(home, ["clean"], {})

    assert made == 0
    assert noted == Noted()


def test_an_app_of_100_datasets_with_10000_batches_is_shown_within_a_second(
    browser: Browser, tmp_path: Path
) -> None:
    tables = "\n".join(
        f"app.sql('t{n:02d}', 'SELECT id FROM {'events' if n < 9 else f't{n // 2:02d}'}')"
        for n in range(99)
    )
    source = "@app.source()\ndef events():\n    return ms.Memory('id BIGINT')\n"
    head = f"import millstream as ms\napp = ms.App('wide')\n{source}"
    (tmp_path / "app.py").write_text(head + tables)
    home = Home.at(tmp_path / "home")
    home.prepare("wide", sources=["events"])
    now = datetime.now(UTC)
    writer = HistoryWriter(home.history)
    for n in range(99):
        ago = [timedelta(seconds=5 * (100 - batch)) for batch in range(101)]
        writer.write(
            [BatchRecord(f"t{n:02d}", b, now - at, input=9, output=9) for b, at in enumerate(ago)]
        )
    writer.close()
    with (
        running_console(tmp_path, "app.py", "--home", "home") as console,
        page_of(browser, console) as (page, noted),
    ):
        expect(page.locator(".node")).to_have_count(100)
        page.screenshot(path=PICTURES / "hundred-light.png")
        took_s = page.evaluate(
            "async () => { const began = performance.now(); await fetch('/api/overview'); "
            "return (performance.now() - began) / 1000; }"
        )
        painted_s = page.evaluate("performance.now() / 1000")
        page.reload()
        page.wait_for_selector(f"{READY} .node")
        painted_s = page.evaluate("performance.now() / 1000")
        page.keyboard.press("/")
        page.keyboard.type("t42")
        page.keyboard.press("Enter")
        expect(page.locator(".nm.large")).to_have_text("t42")

    assert took_s < 1
    assert painted_s < 3
    assert noted == Noted()
