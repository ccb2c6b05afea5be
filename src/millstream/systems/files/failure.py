"""Why a file cannot be read, in plain words."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from millstream.checkpoint.file_log import plain_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_NAMED = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] .*?reading file (\S+)\. *(.*)")
_RAISED = re.compile(r"UnreadableFileError: (\[.*\])")
_CAUSE = re.compile(r"^Caused by: (\S+?)(?:: (.*))?$", re.MULTILINE)
_PASSING = re.compile(
    r"Timeout|Connect|UnknownHost|NoRoute|Socket|Interrupt|OutOfMemory|"
    r"No space left|Too many open files|Input/output error|Stale file handle"
)
"""Causes that say nothing of a file: it is tried again."""
_WORDS = (
    (re.compile(r"does not exist|FILE_NOT_EXIST|No such file"), "it is not there any more"),
    (re.compile(r"Permission denied|AccessDenied|AccessControl"), "no permission to read it"),
    (re.compile(r"not a gzip file|incorrect header check"), "it is not gzip"),
    (re.compile(r"CRC|checksum", re.I), "it is not what its checksum says"),
    (re.compile(r"not a Parquet file"), "it is not Parquet, or is cut off"),
    (re.compile(r"EOFException|unexpected end|premature end|truncated", re.I), "it is cut off"),
)
_UNKNOWN = (".7z", ".br", ".lz4", ".lzo", ".rar", ".sz", ".tar", ".tgz", ".xz", ".z", ".zip")
_FIX = "compress it with gzip, zstd or bzip2"


class UnreadableFileError(ValueError):
    """A file that cannot be read, raised on a worker."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(json.dumps([path, reason]))


def unreadable(error: BaseException) -> tuple[str, str] | None:
    """Return the file at which Spark failed, and why; None if it failed otherwise."""
    text = "\n".join(_texts(error))
    if raised := _RAISED.search(text):
        path, reason = json.loads(raised[1])
        return str(path), str(reason)
    if (named := _NAMED.search(text)) is None:
        return None
    causes = _CAUSE.findall(text[named.end() :])
    if any(_PASSING.search(" ".join(cause)) for cause in causes):
        return None
    return plain_path(named[2]), _reason(named[1], named[3], causes)


def refusal(path: str) -> str | None:
    """Return why a compressed text file is not read: Spark would find other lines in it, or none.

    What Hadoop, and so Spark, writes as .snappy is a row of blocks, which no other program writes.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending in _UNKNOWN or path.lower().endswith(".tar.gz"):
        return f"{ending} files cannot be read: {_FIX}"
    if ending == ".snappy" and not _is_hadoop_snappy(path):
        return f"it is not in whole blocks, as Spark writes .snappy: {_FIX}"
    return None


def _reason(condition: str, sentence: str, causes: list[tuple[str, str]]) -> str:
    known = " ".join((condition, *(word for cause in causes for word in cause)))
    for found, words in _WORDS:
        if found.search(known):
            return words
    if sentence := sentence.partition("SQLSTATE")[0].strip():
        return sentence
    kind, message = causes[-1] if causes else (condition, "")
    return f"{kind.rpartition('.')[2]}: {message}"


def _texts(error: BaseException) -> Iterator[str]:
    """All that is known of a failure: what Python says, and each cause in the JVM."""
    yield str(error)
    found = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while found is not None:
        yield f"Caused by: {found}"
        found = found.getCause()


def _is_hadoop_snappy(path: str) -> bool:
    """Whether a file of this machine is a row of blocks: a size, and chunks that make it up."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            while file.tell() < size:
                left = _number(file)
                while left > 0:
                    end = _number(file) + file.tell()
                    left -= _raw_size(file.read(5))
                    file.seek(end)
                if left < 0 or file.tell() > size:
                    return False
    except (OSError, IndexError):
        return False
    return True


def _number(file: IO[bytes]) -> int:
    four = file.read(4)
    if len(four) < 4:
        raise IndexError
    return int.from_bytes(four, "big")


def _raw_size(chunk: bytes) -> int:
    """Read how long a chunk is when it is decompressed; never 0, so that a walk ends."""
    value = shift = at = 0
    while True:
        byte = chunk[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value or 2**32
        shift, at = shift + 7, at + 1
