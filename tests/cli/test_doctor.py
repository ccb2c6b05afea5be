from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millstream.doctor import machine
from millstream.lake.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Outcome

APP = """
import millstream as ms
app = ms.App("shop")
app.source(name="orders")(lambda: ms.Kafka("orders", "127.0.0.1:1", schema="id BIGINT"))
"""


@pytest.fixture(autouse=True)
def without_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MILLSTREAM_PROFILE", raising=False)


def test_without_an_app_only_the_machine_is_looked_at(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_NAME_WITHIN_S", 60)
    monkeypatch.setattr(machine, "_ANSWERS_WITHIN_S", 120)
    outcome = millstream("doctor", "--json")

    reported = json.loads(outcome.out)
    subjects = [diagnosis["subject"] for diagnosis in reported["diagnoses"]]
    assert (outcome.code, reported["is_well"]) == (0, True)
    assert subjects[0] == "java"
    assert "driver" not in subjects


def test_a_server_that_does_not_answer_is_reported_with_the_fix(
    millstream: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APP)
    Home.at(tmp_path / ".millstream" / "shop").prepare("shop", sources=["orders"])

    outcome = millstream("doctor")

    assert outcome.code == 3
    lines = outcome.out.splitlines()
    at = lines.index("✗ source orders  127.0.0.1:1 does not answer: Connection refused")
    assert lines[at + 1] == "  fix: start it, correct the address, or open the network to it"
    assert lines[-1] == "✓ checkpoints    0 sound"


def test_an_app_that_is_wrong_does_not_keep_the_machine_from_being_looked_at(
    millstream: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text("nonsense\n")

    outcome = millstream("doctor", "app.py")

    assert outcome.code == 3
    assert outcome.out.splitlines()[0].startswith("✗ app")
    assert "✓ ports" in outcome.out


def test_faults_of_the_profile_are_reported(
    millstream: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "millstream.toml").write_text("[profile.default.sources.ordrs]\n")

    outcome = millstream("doctor", "app.py")

    assert outcome.out.splitlines()[1] == "  fix: did you mean 'orders'? sources are orders"
