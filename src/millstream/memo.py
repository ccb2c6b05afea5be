"""Answers of a package that is slow to import, remembered between processes."""

from __future__ import annotations

import hashlib
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.settings import cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def remembered(
    question: str, find: Callable[[], Mapping[str, int]], *, by: Sequence[str]
) -> Mapping[str, int]:
    """Give the names and numbers that were found for a question before, or find them.

    Args:
        question: All that the answer depends on.
        find: Finds them; what it raises is not remembered.
        by: The modules that find them; where one has changed, they are asked again.
    """
    asked = json.dumps([question, [(module, _changed(module)) for module in by]])
    key = hashlib.sha256(asked.encode()).hexdigest()
    file = cache_dir() / "memo" / f"{key}.json"
    try:
        return {name: int(number) for name, number in json.loads(file.read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        found = find()
        _write(file, found)
        return found


def _changed(module: str) -> int | None:
    spec = find_spec(module)
    file = Path(spec.origin) if spec and spec.origin else None
    return file.stat().st_mtime_ns if file and file.exists() else None


def _write(file: Path, found: Mapping[str, int]) -> None:
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(dict(found)))
        draft.replace(file)
    except OSError:
        return  # A cache that cannot be written costs time, no more.
