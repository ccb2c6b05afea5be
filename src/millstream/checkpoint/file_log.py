"""The files that a file source has read, as Spark logs them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from millstream.checkpoint.checksum import write_sealed
from millstream.checkpoint.entry import parse_file_log

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from millstream.checkpoint.entry import FileRead
    from millstream.checkpoint.log import CheckpointLog

# A file may be stamped a moment after it was listed; Spark stores whole milliseconds.
_MTIME_SLACK_MS = 1000


def files_of_batch(log: CheckpointLog, batch: int) -> tuple[str, ...]:
    """Return the paths of the files that a planned batch reads; none if it reads no files."""
    end = log.offsets(batch).log_offset
    before = log.offsets(batch - 1).log_offset if batch else None
    if end is None:
        return ()
    numbers = range(0 if before is None else before + 1, end + 1)
    return tuple(plain_path(file.path) for n in numbers for file in _files_of_entry(log.path, n))


def forget_files(checkpoint: Path, paths: Collection[str]) -> None:
    """Have Spark, when it starts again, take some files as new."""
    for entry in _entries(checkpoint):
        files = parse_file_log(entry.read_bytes())
        kept = [file for file in files if plain_path(file.path) not in paths]
        if len(kept) < len(files):
            write_sealed(entry, "\n".join(("v1", *(file.to_line() for file in kept))))


def changed_files(checkpoint: Path) -> Iterator[str]:
    """Name the files a file source has read that were replaced or truncated since.

    Spark reads a path once: what is in such a file now is not read.
    """
    for file in _read(checkpoint):
        path = unquote(urlsplit(file.path).path)
        try:
            changed = os.stat(path).st_mtime * 1000 > file.timestamp + _MTIME_SLACK_MS
        except OSError:
            continue
        if changed:
            yield path


def plain_path(url: str) -> str:
    """Return a path as people write it; that of a remote file with its scheme.

    >>> plain_path("file:///data/a%20b.json"), plain_path("s3a://bucket/a%20b.json")
    ('/data/a b.json', 's3a://bucket/a b.json')
    """
    return unquote(urlsplit(url).path if url.startswith("file:") else url)


def _read(checkpoint: Path) -> Iterator[FileRead]:
    """Read each file once: compacted entries repeat those before them."""
    seen: set[str] = set()
    for entry in _entries(checkpoint):
        # Other sources keep other things here; damaged entries are reported elsewhere.
        with suppress(ValueError, KeyError, TypeError):
            for file in parse_file_log(entry.read_bytes()):
                if file.path not in seen:
                    seen.add(file.path)
                    yield file


def _files_of_entry(checkpoint: Path, number: int) -> list[FileRead]:
    """Read one entry; in a compacted one, which has all files so far, its own are the last."""
    log = checkpoint / "sources" / "0"
    names = (log / f"{number}", log / f"{number}.compact")
    if (entry := next((file for file in names if file.exists()), None)) is None:
        # Spark has removed it; a later compacted entry has its files.
        return [file for file in _read(checkpoint) if file.batch == number]
    version, *lines = entry.read_bytes().splitlines()
    found: list[FileRead] = []
    for line in reversed(lines):
        [file] = parse_file_log(version + b"\n" + line)
        if file.batch != number:
            break
        found.append(file)
    return found[::-1]


def _entries(checkpoint: Path) -> list[Path]:
    log = checkpoint / "sources" / "0"
    return sorted(log.glob("[0-9]*")) if log.exists() else []
