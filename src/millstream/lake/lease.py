"""One home, one driver: a file lock that dies with its holder, and an epoch that only grows."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from millstream.crash import reach
from millstream.errors import MillstreamError, fault
from millstream.lake.durable import sync_folder, sync_written

if TYPE_CHECKING:
    from io import TextIOWrapper
    from pathlib import Path

    from millstream.lake.home import Home


@dataclass(frozen=True, slots=True)
class Holder:
    """The driver that holds a home."""

    pid: int
    host: str
    since: str

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        return self.host == socket.gethostname()

    def fault(self, home: Home) -> MillstreamError:
        """Return the error that it holds a home."""
        return fault(
            "HOME_LOCKED", home=str(home.path), pid=self.pid, host=self.host, since=self.since
        )


def holder_of(home: Home) -> Holder | None:
    """Return the driver that holds a home; None if none does.

    Raises:
        HOME_DAMAGED: What the driver left cannot be read.
    """
    if not home.lease.exists():
        return None
    return _holder(home.lease, max(_epochs(home.lease), default=0))


class Lease:
    """The right to write into a home, under an epoch no earlier driver had."""

    def __init__(self, home: Home, epoch: int, file: TextIOWrapper) -> None:
        self.home, self.epoch, self._file = home, epoch, file

    @staticmethod
    def acquire(home: Home, *, takeover: bool = False) -> Lease:
        """Lock a home and raise its epoch.

        Args:
            home: A prepared home.
            takeover: Take the home even if the holder is alive (hung or stopped): it is fenced out.

        Raises:
            HOME_LOCKED: Another driver holds the home.
        """
        while True:
            latest = max(_epochs(home.lease), default=0)
            if not takeover and (held := _holder(home.lease, latest)):
                raise held.fault(home)
            epoch = latest + 1
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

    def hold(self) -> None:
        """Check that the home is there, and that no later driver has taken over.

        Raises:
            HOME_GONE: The home is not there.
            OvertakenError: A later driver has.
        """
        if not self.home.lease.exists():
            raise fault("HOME_GONE", home=str(self.home.path))
        if (latest := self.latest_epoch) > self.epoch:
            raise fault("OVERTAKEN", theirs=latest, mine=self.epoch, table=str(self.home.path))

    def release(self) -> None:
        """Release the lock for the next driver."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _epochs(folder: Path) -> list[int]:
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())


def _holder(folder: Path, epoch: int) -> Holder | None:
    file = folder / f"{epoch:08d}"
    try:
        with file.open() as held:
            try:
                # Shared, so that a process that only looks is never mistaken for a driver.
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Holder(**json.load(held))
    except (ValueError, TypeError) as error:
        raise fault("HOME_DAMAGED", file=str(file), why=type(error).__name__) from error
    except FileNotFoundError:
        pass
    return None


def _claim(folder: Path, epoch: int) -> TextIOWrapper | None:
    # Locked before it has its name: no process ever sees an epoch that looks abandoned.
    temporary = folder / f"{epoch:08d}.{os.getpid()}.tmp"
    file = temporary.open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
    json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": f"{since} UTC"}, file)
    sync_written(file)
    try:
        os.link(temporary, folder / f"{epoch:08d}")
    except FileExistsError:
        file.close()
        return None
    finally:
        temporary.unlink()
    # Before any earlier one is forgotten: every table would refuse epochs that start over.
    sync_folder(folder)
    return file


def _forget(folder: Path, *, before: int) -> None:
    for epoch in _epochs(folder):
        if epoch < before:
            (folder / f"{epoch:08d}").unlink(missing_ok=True)
