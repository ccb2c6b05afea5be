from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.apps import READING, app_of, reading, rows, run

from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PROFILE = """\
[profile.prod.sources.readings]
kind = "files"
path = "${CANARY_INBOX}"
options.maxFilesPerTrigger = "${CANARY_FILES}"
"""


@pytest.mark.spark
def test_an_app_reads_from_where_its_profile_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    line = str(reading(1, "12:00:00")).replace("'", '"')
    for name in ("first", "second"):
        (inbox / f"{name}.json").write_text(line + "\n")
    (tmp_path / "millstream.toml").write_text(PROFILE)
    monkeypatch.setenv("CANARY_INBOX", str(inbox))
    monkeypatch.setenv("CANARY_FILES", "1")
    app = app_of(Memory(READING))
    app.choose("prod", beside=tmp_path)

    run(app, tmp_path / "home")

    assert rows(tmp_path / "home", "readings", "id", "_batch") == [(1, 0), (1, 1)]
