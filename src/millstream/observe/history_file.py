"""The SQLite file of history: its tables, how it is opened, and how a damaged one is set aside."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

FORMAT = 1
"""Raised when earlier versions cannot read what this one writes; such a file is set aside."""

_LOCKED_FOR_S = 5.0
_WAL_BYTES = 4 * 1024 * 1024

# Numbers and JSON, so that `sqlite3 history.db` shows what there is. Times are microseconds.
_TABLES = """
CREATE TABLE dataset (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last TEXT NOT NULL, totals TEXT NOT NULL
);
CREATE TABLE batch (
  dataset INTEGER NOT NULL, at INTEGER NOT NULL, batch INTEGER NOT NULL, span INTEGER NOT NULL,
  batches INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, duration_ms INTEGER,
  behind_rows INTEGER, behind_s REAL, total INTEGER NOT NULL, rest TEXT NOT NULL,
  PRIMARY KEY (dataset, at)
) WITHOUT ROWID;
CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, run INTEGER NOT NULL,
  kind TEXT NOT NULL, dataset TEXT NOT NULL, detail TEXT NOT NULL,
  code TEXT, what TEXT, fix TEXT, file TEXT, line INTEGER
);
CREATE TABLE run (
  id INTEGER PRIMARY KEY, started_at INTEGER NOT NULL, ended_at INTEGER, rest TEXT NOT NULL
);
CREATE TABLE writing (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL);
INSERT INTO writing VALUES (1, 0);
"""


class DamagedHistoryError(Exception):
    """The file is not a history of this format."""


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open a history, or make it.

    Raises:
        DamagedHistoryError: The file is damaged, or of another format.
        sqlite3.Error: It cannot be written.
        OSError: Its folder cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _make(path)
    connection = sqlite3.connect(
        path, timeout=_LOCKED_FOR_S, isolation_level=None, check_same_thread=False
    )
    try:
        _make_ready(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        if is_damage(error):
            raise DamagedHistoryError(str(error)) from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open a history that another process may be writing.

    Raises:
        DamagedHistoryError: The file is damaged, or of another format.
        sqlite3.Error: It cannot be read.
        FileNotFoundError: Another process is about to make it.
    """
    # A folder that cannot be written has no room for the shared memory of WAL.
    modes = ("mode=ro", "mode=ro&immutable=1")
    for mode in modes:
        address = f"{path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(
            address, uri=True, timeout=_LOCKED_FOR_S, isolation_level=None, check_same_thread=False
        )
        try:
            _check_format(_format_of(connection))
        except sqlite3.DatabaseError as error:
            connection.close()
            if is_damage(error):
                raise DamagedHistoryError(str(error)) from error
            if mode is modes[-1] or not path.exists():
                raise
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError


def set_aside(path: Path) -> Path:
    """Rename a damaged history; one that was set aside earlier is replaced."""
    aside = path.with_name(f"{path.name}.damaged")
    path.replace(aside)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is not a database, or not a whole one."""
    if isinstance(error, sqlite3.OperationalError) and "no such" in str(error):
        return True
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _make(path: Path) -> None:
    """Make an empty history, unless another process is quicker: nobody sees one half made."""
    with TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        with closing(sqlite3.connect(made, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(f"{_TABLES}; PRAGMA user_version={FORMAT}")
        with suppress(FileExistsError):
            os.link(made, path)


def _make_ready(connection: sqlite3.Connection) -> None:
    if (found := _format_of(connection)) != FORMAT:
        raise DamagedHistoryError(_other_format(found))
    # After a power cut the last batches may be missing, and the file is whole.
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")


def _format_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check_format(found: int) -> None:
    if found == 0:
        raise FileNotFoundError
    if found != FORMAT:
        raise DamagedHistoryError(_other_format(found))


def _other_format(found: int) -> str:
    return f"it has format {found}, and this version writes format {FORMAT}"
