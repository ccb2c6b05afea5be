"""Homes of examples, as an earlier version wrote them: made once, and gone on from ever after.

`python -m tests.old_home etl` makes one anew, and is worth something with an earlier version only.
"""

from __future__ import annotations

import json
import random
import re
import runpy
import sys
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from millstream.app import App

_REPOSITORY = Path(__file__).parents[1]
HOMES = Path(__file__).with_name("resources") / "homes"
EXAMPLES = {
    "etl": ("bronze", "reading"),
    "serving": ("views", "view"),
    "presence": ("clicks", "click"),
}
_START = datetime(2026, 11, 1, 12, tzinfo=UTC)
_RECORDS = 600


def example(name: str, folder: Path) -> App:
    """Load an example that reads files of a folder; what it serves goes there as well."""
    source, _ = EXAMPLES[name]
    (folder / "data").mkdir(exist_ok=True)
    text = (
        (_REPOSITORY / "examples" / name / "app.py")
        .read_text()
        .replace("visits.db", f"{folder}/visits.db")
    )
    (folder / "app.py").write_text(text)
    profile = f'[profile.files.sources.{source}]\nkind = "files"\npath = "{folder}/data"\n'
    (folder / "millstream.toml").write_text(profile)
    return load(str(folder / "app.py"), "files")


def send(name: str, folder: Path, part: int) -> int:
    """Write a part of the records; a few come twice, late or broken. Return how many."""
    _, maker = EXAMPLES[name]
    make = runpy.run_path(str(folder / "app.py"))[maker]
    dice = random.Random(part)
    lines = []
    for number in range(part * _RECORDS, (part + 1) * _RECORDS):
        behind = 600 if dice.random() < 0.01 else dice.random() * 3
        at = _START + timedelta(seconds=number / 10 - behind)
        lines.append(json.dumps({**make(dice, number), "at": at.isoformat()}))
        if dice.random() < 0.03:
            lines.append(lines[-1] if dice.random() < 0.5 else lines[-1][:-9])
    (folder / "data" / f"part-{part}.json").write_text("\n".join(lines) + "\n")
    return len(lines)


def unpack(name: str, folder: Path) -> None:
    """Put a home into a folder, as if it had always been there."""
    with tarfile.open(HOMES / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    # Spark notes the full names of files that it has read, and of those that describe its state.
    checkpoints = folder / "home" / "checkpoints"
    for log in (
        *checkpoints.glob("*/sources/0/[0-9]*"),
        *checkpoints.glob("*/state/*/_metadata/**/[0-9]*"),
    ):
        if log.is_file():
            moved = re.sub(r"file:/[^\"]*?(?=/(data|home)/)", folder.as_uri(), log.read_text())
            log.write_text(moved)
            log.with_name(f".{log.name}.crc").unlink(missing_ok=True)


def _make(name: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        app = example(name, folder)
        for part in range(2):
            send(name, folder, part)
            app.run(once=True, home=folder / "home")
        with tarfile.open(HOMES / f"{name}.tar.gz", "w:gz") as archive:
            for path in (folder / "home", *folder.glob("*.db")):
                archive.add(path, arcname=path.name)


if __name__ == "__main__":
    HOMES.mkdir(exist_ok=True)
    _make(sys.argv[1])
