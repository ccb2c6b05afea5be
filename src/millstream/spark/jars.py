"""Which jars Spark gets: exactly those of a lock file, checked, and downloaded once."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.spark.cache import cache_dir, exclusive
from millstream.spark.java import find_java
from millstream.spark.report import silent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.spark.report import Report

LOCK = Path(__file__).with_name("jars.lock")
"""The jars of Millstream itself."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked jar."""

    coordinate: str
    """`organisation:artifact:revision`."""
    sha256: str

    @property
    def file_name(self) -> str:
        """The name of the jar in the cache."""
        _, artifact, revision = self.coordinate.split(":")
        return f"{artifact}-{revision}.jar"


def read_lock(lock: Path) -> tuple[Jar, ...]:
    """Read the jars that a lock file names, in class path order."""
    return tuple(Jar(**entry) for entry in tomllib.loads(lock.read_text())["jar"])


def resolve(lock: Path = LOCK, *, report: Report = silent) -> tuple[Path, ...]:
    """Make sure every locked jar is in the cache and is what the lock says.

    Offline once all are there. A jar is hashed when it is new or was touched, not at each start.

    Raises:
        JAR_CHECKSUM: A jar is not what the lock says; it has been deleted.
        JAR_UNAVAILABLE: A jar is neither cached nor downloadable.
    """
    jars = read_lock(lock)
    folder = _folder()
    with exclusive(folder / ".lock"):
        stamps = _Stamps(folder / ".verified.json")
        missing = missing_jars(lock)
        if missing:
            _fetch(missing, folder, report=report)
        for jar in jars:
            _verify(jar, folder / jar.file_name, stamps)
        stamps.write()
    report("jars", f"{len(jars)} locked, {'fetched and checked' if missing else 'cached'}")
    return tuple(folder / jar.file_name for jar in jars)


def missing_jars(lock: Path = LOCK) -> tuple[Jar, ...]:
    """Return the locked jars that are not in the cache."""
    return tuple(jar for jar in read_lock(lock) if not (_folder() / jar.file_name).exists())


def altered_jars(lock: Path = LOCK) -> tuple[Jar, ...]:
    """Return the cached jars that differ from the lock; all are hashed again."""
    there = (jar for jar in read_lock(lock) if (_folder() / jar.file_name).exists())
    return tuple(jar for jar in there if _sha256(_folder() / jar.file_name) != jar.sha256)


def spark_jars() -> Path:
    """Find the jars pyspark brings along, without importing it."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("jars")


def _folder() -> Path:
    return cache_dir() / "jars"


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


class _Stamps:
    """What size, time and checksum each jar had when it was last hashed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, list[object]] = json.loads(path.read_text()) if path.exists() else {}

    def sha256(self, jar: Path) -> str:
        facts = jar.stat()
        size, time_ns, digest = self._known.get(jar.name, [0, 0, ""])
        if (size, time_ns) != (facts.st_size, facts.st_mtime_ns):
            digest = _sha256(jar)
            self._known[jar.name] = [facts.st_size, facts.st_mtime_ns, digest]
        return str(digest)

    def write(self) -> None:
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(self._known, indent=1))
        draft.replace(self._path)


def _verify(jar: Jar, path: Path, stamps: _Stamps) -> None:
    actual = stamps.sha256(path)
    if actual != jar.sha256:
        path.unlink()
        raise fault(
            "JAR_CHECKSUM",
            coordinate=jar.coordinate,
            actual=actual,
            expected=jar.sha256,
            path=str(path),
        )


def _fetch(jars: Sequence[Jar], folder: Path, *, report: Report) -> None:
    report("jars", f"fetching {len(jars)}, this once: later starts need no network")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        fetched = Path(name)
        output = []
        for line in _ivy(jars, fetched):
            output.append(line)
            if "[SUCCESSFUL ]" in line:
                report("jars", f"fetched {line.split('!')[-1].split(' ')[0]}")
        absent = [jar for jar in jars if not (fetched / jar.file_name).exists()]
        if absent:
            log = cache_dir() / "logs" / "jars.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("".join(output))
            named = [jar for jar in absent if f"{_ivy_name(jar)}: not found" in "".join(output)]
            raise fault(
                "JAR_UNAVAILABLE",
                coordinates=", ".join(jar.coordinate for jar in named or absent),
                folder=str(folder),
                log=str(log),
            )
        for jar in jars:
            (fetched / jar.file_name).replace(folder / jar.file_name)


def _ivy(jars: Sequence[Jar], folder: Path) -> Iterator[str]:
    """Run the Ivy that pyspark ships, and yield its output line by line."""
    wanted = folder / "ivy.xml"
    wanted.write_text(_ivy_module(jars))
    command = [
        *(str(find_java().command), "-jar", str(next(spark_jars().glob("ivy-*.jar")))),
        *("-cache", str(folder / "ivy"), "-ivy", str(wanted), "-types", "jar", "bundle"),
        *("-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as ivy:
        assert ivy.stdout is not None
        yield from ivy.stdout


def _ivy_module(jars: Sequence[Jar]) -> str:
    dependency = (
        '<dependency org="{}" name="{}" rev="{}" conf="default->master" transitive="false"/>'
    )
    wanted = "\n".join(dependency.format(*jar.coordinate.split(":")) for jar in jars)
    return (
        '<ivy-module version="2.0"><info organisation="millstream" module="jars"/>\n'
        f"<dependencies>\n{wanted}\n</dependencies></ivy-module>\n"
    )


def _ivy_name(jar: Jar) -> str:
    return "{}#{};{}".format(*jar.coordinate.split(":"))
