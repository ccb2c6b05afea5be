"""The version checksum of a Delta commit: what spares its readers a Spark job each.

Delta's protocol lets a writer leave `<version>.crc` beside `<version>.json`, with the table's
protocol, metadata and size. Without it, every reader of every new version rebuilds these from the
log by a Spark job (about 100 ms, a quarter of a small batch). delta-rs writes none, so we do. The
file is optional: where the log does not contain all that it needs, none is written.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_FURTHEST = 200
"""How many commits without a checksum are read to make one."""


@dataclass(frozen=True, slots=True)
class _Content:
    metadata: Any = None
    protocol: Any = None
    tableSizeBytes: int = 0  # noqa: N815 - the protocol's own names
    numFiles: int = 0  # noqa: N815
    numMetadata: int = 1  # noqa: N815
    numProtocol: int = 1  # noqa: N815


class _IncompleteLogError(Exception):
    """The log does not contain what a checksum needs."""


def write_checksum(log: Path, version: int) -> None:
    """Write the checksum of a version beside its commit, if the log contains enough for it."""
    try:
        content = _content(log, version)
    except (OSError, ValueError, _IncompleteLogError):
        return
    draft = log / f".{version}.crc.draft"
    draft.write_text(json.dumps(asdict(content)))
    draft.replace(_file(log, version, "crc"))


def _content(log: Path, version: int) -> _Content:
    commits = list[str]()
    content: _Content | None = None
    for at in range(version, max(-1, version - _FURTHEST), -1):
        if content := _known(_file(log, at, "crc")):
            break
        commits.append(_file(log, at, "json").read_text())
    content = content or _Content()
    for commit in reversed(commits):
        content = _after(content, map(json.loads, filter(None, commit.split("\n"))))
    if content.metadata is None or content.protocol is None:
        raise _IncompleteLogError
    if content.metadata["configuration"].get("delta.enableInCommitTimestamps") == "true":
        raise _IncompleteLogError
    return content


def _known(path: Path) -> _Content | None:
    try:
        content = json.loads(path.read_text())
        return _Content(
            metadata=content["metadata"],
            protocol=content["protocol"],
            tableSizeBytes=content["tableSizeBytes"],
            numFiles=content["numFiles"],
        )
    except (OSError, ValueError, KeyError):
        return None


def _after(content: _Content, actions: Iterable[Mapping[str, Any]]) -> _Content:
    metadata, protocol = content.metadata, content.protocol
    size, files = content.tableSizeBytes, content.numFiles
    for action in actions:
        metadata = action.get("metaData", metadata)
        protocol = action.get("protocol", protocol)
        for kind, sign in ("add", 1), ("remove", -1):
            if file := action.get(kind):
                if file.get("size") is None:
                    raise _IncompleteLogError
                size += sign * file["size"]
                files += sign
    return _Content(metadata, protocol, size, files)


def _file(log: Path, version: int, ending: str) -> Path:
    return log / f"{version:020d}.{ending}"
