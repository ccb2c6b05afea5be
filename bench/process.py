"""Programs as they are where they are installed: with their modules compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def timed(*words: str, compiled: Path, place: Path | None = None) -> tuple[float, float]:
    """Run Python to its end; give seconds by the clock, and of the processor."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *words]
    before, began = os.times(), time.monotonic()
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=place)
    took, after = time.monotonic() - began, os.times()
    used = after.children_user + after.children_system
    return took, used - before.children_user - before.children_system
