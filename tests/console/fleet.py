"""The app that tests and pictures of the console show, with a home that a real run has written.

`python -m tests.console.fleet` makes the home anew: it runs tests/resources/fleet.py for a while.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from millstream.lake.delta import FencedTable
from millstream.lake.files import DataFile
from millstream.lake.log import facts_of

if TYPE_CHECKING:
    from millstream.lake.home import Home

_RESOURCES = Path(__file__).parents[1] / "resources"
_HOME = _RESOURCES / "homes" / "fleet.tar.gz"
_UNUSED = ("/state", "/sources", "/staging", "/logs")
"""Parts of a home that only a run reads."""


def unpack(folder: Path) -> None:
    """Put the app, its home and its store into a folder."""
    with tarfile.open(_HOME) as archive:
        archive.extractall(folder, filter="data")
    shutil.copy(_RESOURCES / "fleet.py", folder / "app.py")


def commit_batch(home: Home, name: str, *, rows: int) -> None:
    """Commit the next batch of a table that is appended to, as its driver does, without Spark."""
    before = facts_of(home.table(name))
    table = FencedTable(home.table(name), name=name, epoch=before.epoch)
    staged = home.path / f"{name}-{before.batch + 1}.parquet"
    schema = DeltaTable(str(home.table(name))).to_pyarrow_table().schema
    columns = [pa.nulls(rows, field.type) for field in schema]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), staged)
    facts = replace(before, batch=before.batch + 1, rows=rows)
    counts = {"input": rows, "written": rows}
    table.append([DataFile.read(staged, {})], facts.plus(counts))


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    is_unused = any(f"{part}/" in f"{entry.name}/" for part in _UNUSED)
    return None if is_unused and "checkpoints" in entry.name else entry


def _make() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shutil.copy(_RESOURCES / "fleet.py", folder / "app.py")
        run = ("run", "app.py", "--home", "home", "--for", "20s", "--no-console")
        subprocess.run([sys.executable, "-m", "millstream.cli", *run], cwd=folder, check=True)
        with tarfile.open(_HOME, "w:gz") as archive:
            for path in (folder / "home", *folder.glob("fleet.db*")):
                archive.add(path, arcname=path.name, filter=_needed)


if __name__ == "__main__":
    _make()
