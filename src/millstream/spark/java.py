"""Which Java runs Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import JavaMissingError, JavaVersionError

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPPORTED = (17, 21)
"""The Java versions Spark 4.2 is tested with."""

_COMMON_PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on."""

    home: Path
    version: str

    @property
    def command(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """Find a Java that Spark can run on: `JAVA_HOME`, else `PATH`, else the usual places.

    `JAVA_HOME` is the user's word: a wrong one is reported, never passed over.

    Raises:
        JavaMissingError: There is no Java on this machine.
        JavaVersionError: There is one, but Spark cannot run on it.
    """
    unsuitable: Java | None = None
    for home in _homes():
        java = _java_at(home)
        if java is None:
            continue
        if int(java.version.split(".")[0]) in SUPPORTED:
            return java
        unsuitable = unsuitable or java
    if unsuitable:
        raise JavaVersionError(unsuitable.version, home=str(unsuitable.home), supported=SUPPORTED)
    raise JavaMissingError(supported=SUPPORTED, java_home=os.environ.get("JAVA_HOME"))


def _homes() -> Iterator[Path]:
    if chosen := os.environ.get("JAVA_HOME"):
        yield Path(chosen)
        return
    if command := shutil.which("java"):
        yield Path(command).resolve().parent.parent
    for place in _COMMON_PLACES:
        yield from sorted(Path("/").glob(place[1:]))


def _java_at(home: Path) -> Java | None:
    command = home / "bin" / "java"
    if not os.access(command, os.X_OK):
        return None
    version = re.search(r'(?:JAVA_VERSION=|version )"([\d.]+)', _told_by(home, command))
    return Java(home, _modern(version[1])) if version else None


def _told_by(home: Path, command: Path) -> str:
    # Starting Java only to ask takes 0.2 s of each start.
    release = home / "release"
    if release.exists():
        return release.read_text()
    told = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    return told.stderr


def _modern(version: str) -> str:
    """Drop the `1.` that Java wrote before its version until Java 8.

    >>> _modern("1.8.0"), _modern("17.0.15")
    ('8.0', '17.0.15')
    """
    return version.removeprefix("1.")
