"""A copy of a home as it was between two batches, made while its driver runs."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.lake.durable import sync_file, sync_folder
from millstream.lake.home import Home
from millstream.upkeep.maintained_query import Pausable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.upkeep.maintained_query import MaintainedQuery

_SNAPSHOT = "snapshot"
_DATABASE = ".db"
_OF_DATABASES = (".db-wal", ".db-shm")
_LEFT_OUT = ("logs", "maintenance")
"""Not needed to continue; the snapshot itself is in one of them."""


def take_snapshot(home: Home, queries: Sequence[MaintainedQuery] = ()) -> Path:
    """Link all files of a home into a folder of it, while no batch is under way.

    No file of a home is changed once it has its name, but for the databases, which are copied.
    """
    folder = home.maintenance / _SNAPSHOT
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as paused:
        for query in queries:
            if isinstance(query.running, Pausable):
                paused.enter_context(query.running.paused())
        for file in _files(home.path):
            target = folder / file.relative_to(home.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == _DATABASE:
                _copy_database(file, target)
            elif not file.name.endswith(_OF_DATABASES):
                _link(file, target)
    return folder


def copy_snapshot(snapshot: Path, into: Path) -> int:
    """Copy a snapshot to where it is kept, and remove it; return how many bytes it has.

    Raises:
        BACKUP_TAKEN: Something is there already.
    """
    size = copy_folder(snapshot, into)
    shutil.rmtree(snapshot)
    return size


def copy_folder(source: Path, into: Path) -> int:
    """Copy a folder to a place where nothing is, durably; return how many bytes it has.

    Raises:
        BACKUP_TAKEN: Something is there already.
    """
    refuse_if_taken(into)
    into.parent.mkdir(parents=True, exist_ok=True)
    # A copy that was cut short never has the name of a whole one.
    part = into.with_name(f".{into.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(source, part)
    size = 0
    for folder, _, names in os.walk(part):
        for name in names:
            file = Path(folder, name)
            sync_file(file)
            size += file.stat().st_size
        sync_folder(Path(folder))
    part.chmod(0o700)
    if into.exists():
        into.rmdir()
    part.rename(into)
    sync_folder(into.parent)
    return size


def restore(backup: Path, into: Home) -> int:
    """Make a home of a backup; return how many bytes it has.

    Raises:
        NO_BACKUP: The folder is none.
        BACKUP_TAKEN: There is a home already.
        HOME_NEWER: A newer Millstream wrote it.
    """
    kept = Home.at(backup)
    if not kept.is_deployed:
        raise fault("NO_BACKUP", folder=str(backup))
    kept.verify()
    return copy_folder(backup, into.path)


def refuse_if_taken(folder: Path) -> None:
    """Raise if there is anything in a folder.

    Raises:
        BACKUP_TAKEN: There is.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise fault("BACKUP_TAKEN", folder=str(folder))


def _files(home: Path) -> Iterator[Path]:
    for top in sorted(home.iterdir()):
        if top.name in _LEFT_OUT:
            continue
        if top.is_file():
            yield top
        else:
            yield from (file for file in sorted(top.rglob("*")) if file.is_file())


def _link(file: Path, target: Path) -> None:
    try:
        os.link(file, target)
    except FileNotFoundError:
        # Spark removes old state and old logs at any moment.
        return
    except OSError:
        # A file system without links.
        shutil.copy2(file, target)


def _copy_database(file: Path, target: Path) -> None:
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
