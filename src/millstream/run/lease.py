"""One home, one driver: a file lock that dies with its holder, and an epoch that only grows."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from millstream.crash import reach
from millstream.errors import HomeLockedError

if TYPE_CHECKING:
    from io import TextIOWrapper
    from pathlib import Path

    from millstream.lake.home import Home


class Lease:
    """The right to write into a home, under an epoch no earlier driver had."""

    def __init__(self, home: Home, epoch: int, file: TextIOWrapper) -> None:
        self.home, self.epoch, self._file = home, epoch, file

    @staticmethod
    def acquire(home: Home, *, takeover: bool = False) -> Lease:
        """Lock a home and raise its epoch.

        Args:
            home: A prepared home.
            takeover: Go on even if the holder is alive (hung or stopped): it is fenced out.

        Raises:
            HomeLockedError: Another driver holds the home.
        """
        while True:
            latest = _epochs(home.lease)[-1:]
            if latest and not takeover:
                _refuse_if_held(home, home.lease / f"{latest[0]:08d}")
            epoch = (latest[0] if latest else 0) + 1
            file = _claim(home.lease, epoch)
            if file is not None:
                _forget(home.lease, before=epoch)
                with ExitStack() as undo:
                    undo.callback(file.close)
                    reach("home_taken", home.path, "")
                    undo.pop_all()
                return Lease(home, epoch, file)

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last driver that came; greater than this one's if it took over."""
        return max(_epochs(self.home.lease), default=self.epoch)

    def release(self) -> None:
        """Let the next driver in."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def refuse_if_held(home: Home) -> None:
    """Make sure that no driver holds a home.

    Raises:
        HomeLockedError: One does.
    """
    for epoch in _epochs(home.lease)[-1:] if home.lease.exists() else ():
        _refuse_if_held(home, home.lease / f"{epoch:08d}")


def _epochs(folder: Path) -> list[int]:
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())


def _refuse_if_held(home: Home, file: Path) -> None:
    try:
        with file.open() as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = json.load(held)
                raise HomeLockedError(str(home.path), **holder) from None
    except FileNotFoundError:
        return


def _claim(folder: Path, epoch: int) -> TextIOWrapper | None:
    # Locked before it has its name: nobody ever sees an epoch that looks abandoned.
    temporary = folder / f"{epoch:08d}.{os.getpid()}.tmp"
    file = temporary.open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
    json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": f"{since} UTC"}, file)
    file.flush()
    os.fsync(file.fileno())
    try:
        os.link(temporary, folder / f"{epoch:08d}")
    except FileExistsError:
        file.close()
        return None
    finally:
        temporary.unlink()
    return file


def _forget(folder: Path, *, before: int) -> None:
    for epoch in _epochs(folder):
        if epoch < before:
            (folder / f"{epoch:08d}").unlink(missing_ok=True)
