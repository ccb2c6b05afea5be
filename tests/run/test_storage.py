from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from tests.apps import app_of, rows, run
from tests.faults import raises

from millstream.crash import armed
from millstream.errors import MillstreamError
from millstream.systems.files.source import Files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.app import App
    from millstream.observe import Event

pytestmark = pytest.mark.spark

ROWS = 400


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def letters(folder: Path, batch: int) -> None:
    """Write rows that do not compress, 400 kB of them."""
    dice = random.Random(batch)
    records = ({"id": batch * ROWS + n, "text": dice.randbytes(500).hex()} for n in range(ROWS))
    (folder / f"{batch}.json").write_text("".join(json.dumps(r) + "\n" for r in records))


def copying(folder: Path) -> App:
    app = app_of(Files(str(folder), schema="id BIGINT, text STRING"))
    app.sql("copy", "SELECT id, text FROM readings")
    app.sql(
        "sizes", "SELECT length(text) AS l, count(*) AS n FROM readings GROUP BY 1", mode="complete"
    )
    return app


def fill(disk: Path, *, leaving: int) -> Path:
    free = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize - leaving))
    return filler


@pytest.mark.parametrize("leaving", [0, 20_480, 500_000])
def test_a_full_disk_loses_nothing_and_doubles_nothing(
    spark: SparkSession, small_disk: Path, tmp_path: Path, leaving: int
) -> None:
    folder, home = tmp_path / "data", small_disk / "home"
    folder.mkdir()
    app = copying(folder)
    letters(folder, 0)
    run(app, home)
    letters(folder, 1)
    filler = fill(small_disk, leaving=leaving)

    with pytest.raises(MillstreamError) as caught:
        run(app, home)
    filler.unlink()
    run(app, home)

    reported = caught.value.__cause__ if caught.value.code == "QUERY_STOPPED" else caught.value
    assert str(reported) == (
        f"[STORAGE_FULL] no space is left for home {str(home)!r}; what was committed is safe\n"
        "  fix: free some space: the run continues by itself, or start it again"
    )
    for table in ("readings", "copy"):
        assert sorted(rows(home, table, "id")) == [(n,) for n in range(2 * ROWS)]
    assert rows(home, "sizes") == [(1000, 2 * ROWS)]


def test_a_run_goes_on_by_itself_when_there_is_space_again(
    spark: SparkSession, small_disk: Path, tmp_path: Path
) -> None:
    folder, home = tmp_path / "data", small_disk / "home"
    folder.mkdir()
    app = copying(folder)
    letters(folder, 0)
    run(app, home)
    letters(folder, 1)
    filler = fill(small_disk, leaving=150_000)
    freed = threading.Event()

    def free_space(event: Event) -> None:
        if event.kind == "restarting" and not freed.is_set():
            assert event.error is not None
            assert event.error.code == "STORAGE_FULL"
            filler.unlink()
            freed.set()

    running = app.open({"home": home, "once": True}, on_event=free_space)
    running.serve()
    running.raise_if_stopped_for_good()

    assert freed.is_set()
    assert sorted(rows(home, "copy", "id")) == [(n,) for n in range(2 * ROWS)]
    assert rows(home, "sizes") == [(1000, 2 * ROWS)]


def test_a_home_that_is_deleted_during_a_run_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    letters(tmp_path / "in", 0)
    home = tmp_path / "home"

    def delete(point: str, _: str, __: int) -> None:
        if point == "batch_staged":
            shutil.rmtree(home)

    with armed(home, delete), raises("HOME_GONE"):
        run(copying(tmp_path / "in"), home)
