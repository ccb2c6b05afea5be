"""Models over HTTP and in a real browser, over the home of an app with two of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from prometheus_client.parser import text_string_to_metric_families
from tests.console.browser import (
    Noted,
    RunningConsole,
    chromium,
    go,
    page_of,
    running_console,
    serious,
)
from tests.console.conftest import served_home
from tests.learn.stored import APP, make_home

from millstream.lake.home import Home
from millstream.lake.rollback import moment_of, place_rollback, read_rollbacks
from millstream.loading import load
from millstream.observe.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.console.conftest import Client

    from millstream.console.server import ConsoleServer

PICTURES = Path(__file__).parents[2] / "build" / "screenshots"
TO = "2026-01-01T00:10:00Z"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("phishing")
    (made / "app.py").write_text(APP)
    make_home(made / "home")
    return made


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "app.py").write_text(APP)
    return make_home(tmp_path / "home")


@pytest.fixture
def console(home: Home) -> Iterator[ConsoleServer]:
    with served_home(load(str(home.path.parent / "app.py")), home) as console:
        yield console


def test_the_console_answers_with_models_and_what_scores_with_them(
    console: ConsoleServer, ask: Callable[..., Client]
) -> None:
    found = ask(console).ask("/api/models?most=3").json

    champion, challenger = found["models"]
    assert [one["version"] for one in champion["versions"]] == [
        f"2026-01-01T00:{minute}:00Z" for minute in (21, 20, 19)
    ]
    assert champion["versions"][0]["state"] == "in use"
    assert champion["scorers"] == [
        {"query": "judged", "version": "2026-01-01T00:21:00Z", "is_pinned": False}
    ]
    assert challenger["scorers"] == []
    assert [one["learnt"] for one in found["standing"]] == [1250, 1250]


def test_a_roll_back_is_asked_for_by_those_who_may_and_audited(
    console: ConsoleServer, home: Home, ask: Callable[..., Client]
) -> None:
    body = {"model": "champion", "version": TO}

    to_look = ask(console, console.keys.look).post("/api/models/roll-back", **body)
    not_agreed = ask(console).post("/api/models/roll-back", **body)
    done = ask(console).post("/api/models/roll-back", **body, agreed=True)

    assert (to_look.status, to_look.json["code"]) == (403, "CONSOLE_ROLE")
    assert not_agreed.json["code"] == "ROLLBACK_NOT_AGREED"
    assert done.json["to"] == TO
    assert [one.to for one in read_rollbacks(home.models / "champion")] == [TO]
    with History.read_only(home.history) as history:
        [event] = history.events()
    assert (event.kind, event.dataset) == ("model_rolled_back", "champion")
    assert event.detail == f"to {TO}, in the console"


def test_metrics_say_how_good_models_are(
    console: ConsoleServer, ask: Callable[..., Client]
) -> None:
    kept = ask(console, None).ask("/metrics")
    answer = ask(console).ask("/metrics", Accept="text/plain")

    assert kept.status == 401
    families = {f.name: f for f in text_string_to_metric_families(answer.body.decode())}
    learnt = {
        s.labels["dataset"]: s.value for s in families["millstream_model_learnt_rows"].samples
    }
    assert learnt == {"champion": 1250, "challenger": 1250}
    shown = ask(console).ask("/api/models").json["standing"][0]
    of_champion = {
        (s.labels["metric"], s.labels["rows"]): s.value
        for s in families["millstream_model_metric"].samples
        if s.labels["dataset"] == "champion"
    }
    assert of_champion["Accuracy", "recent"] == shown["recent"]["Accuracy"]
    assert of_champion["Accuracy", "all"] == shown["metrics"]["Accuracy"]
    [version, _] = families["millstream_model_version_timestamp_seconds"].samples
    assert version.value == moment_of("2026-01-01T00:21:00Z") / 1_000_000
    drifts = {s.labels["dataset"]: s.value for s in families["millstream_model_drifts"].samples}
    assert drifts == {"champion": 2, "challenger": 0}


@pytest.fixture(scope="module")
def shown(folder: Path) -> Iterator[RunningConsole]:
    with running_console(folder, "app.py", "--home", "home") as console:
        yield console


@pytest.mark.services
@pytest.mark.slow
def test_models_are_shown_compared_and_rolled_back(shown: RunningConsole) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    themes: tuple[Any, ...] = ("light", "dark")
    with chromium() as browser:
        for theme in themes:
            with page_of(browser, shown, theme=theme) as (page, noted):
                go(page, "/models?champion=champion&challenger=challenger")
                expect(page.get_by_role("region", name="Comparison")).to_be_visible()
                expect(page.locator(".uplot")).to_have_count(4)
                page.screenshot(path=PICTURES / f"models-{theme}.png", full_page=True)
                assert serious(page, *(["color-contrast"] if theme == "dark" else [])) == []
            assert noted == Noted()
        with page_of(browser, shown, token=shown.look_token) as (page, _):
            go(page, "/models")
            expect(page.get_by_role("button", name="Roll back")).to_have_count(0)
        with page_of(browser, shown) as (page, noted):
            go(page, "/models")
            row = page.get_by_role("region", name="Versions of champion").locator("tr", has_text=TO)
            row.get_by_role("button", name="Roll back").click()
            row.get_by_role("button", name="Keep").click()
            row.get_by_role("button", name="Roll back").click()
            row.get_by_role("button", name="Forget").click()

            expect(page.locator("main")).to_contain_text(f"Rolled back to {TO}, when a driver runs")
            place = Home.at(shown.home).models / "champion"
            [asked] = read_rollbacks(place)
            place_rollback(place, asked, moment_of("2026-01-01T00:21:30Z"))
            page.reload()
            expect(row).to_contain_text("in use")
            page.screenshot(path=PICTURES / "models-rolled-back.png", full_page=True)
        assert noted == Noted()
