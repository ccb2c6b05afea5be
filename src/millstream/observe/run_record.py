"""What is recorded of a run when it begins: where, by whom, and of which version of the app."""

from __future__ import annotations

import os
import socket
import subprocess
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import concealed
from millstream.observe.record import RunRecord, SettingRecord
from millstream.settings import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.model.graph import Graph
    from millstream.settings import Setting

_GIT_WITHIN_S = 2.0


def run_record(graph: Graph, epoch: int, settings: Mapping[str, Setting]) -> RunRecord:
    """Record that a driver has begun to run an app."""
    files = sorted({Path(dataset.at.file) for dataset in graph.declared})
    files = [file for file in files if file.is_file()]
    return RunRecord(
        id=epoch,
        started_at=datetime.now(UTC),
        pid=os.getpid(),
        host=socket.gethostname(),
        version=__version__,
        app_hash=hash_of(files),
        git_commit=git_commit(files[0].parent) if files else None,
        settings={
            name: SettingRecord(concealed(setting.value), setting.origin)
            for name, setting in settings.items()
        },
    )


def hash_of(files: list[Path]) -> str:
    """Return a short hash of the content of files."""
    digest = sha256()
    for file in files:
        digest.update(sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


def git_commit(folder: Path) -> str | None:
    """Return the commit that is checked out around a folder; None if there is none."""
    command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
