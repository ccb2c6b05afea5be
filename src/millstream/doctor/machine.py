"""Whether this machine can run Spark: Java, jars, Python, memory, disk, ports, clock, names."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.doctor.diagnosis import Diagnosis, within
from millstream.errors import MillstreamError, listed
from millstream.spark.archive import archive_path
from millstream.spark.cache import cache_dir
from millstream.spark.defaults import driver_memory_mb, is_local, memory_mb
from millstream.spark.jars import LOCK, altered_jars, missing_jars, read_lock
from millstream.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.spark.java import Java

_PREPARE = "`python -m millstream.spark`"
_ANSWERS_WITHIN_S = 10
_NAME_WITHIN_S = 1.0
_DRIFT_S = 5.0
_LEAST_FREE_GB, _LITTLE_FREE_GB = 1, 5
_BUILT = datetime(2026, 1, 1, tzinfo=UTC)
"""A clock that is earlier than this version is wrong."""


def look_at_machine(home: Path, *, master: str) -> Iterator[Diagnosis]:
    """Check all that Spark needs of this machine, concurrently; Spark is not started."""
    checks: list[Callable[[], Diagnosis]] = []
    try:
        found = find_java()
    except MillstreamError as error:
        yield Diagnosis.of("java", error)
    else:
        checks += [partial(java, found), partial(archive, found)]
    checks += [shell, jars, packages, partial(workers, master), memory]
    checks += [partial(storage, "home", home), partial(storage, "cache", cache_dir())]
    checks += [ports, partial(clock, home), host_name]
    with ThreadPoolExecutor(len(checks)) as pool:
        yield from pool.map(lambda check: check(), checks)


def java(found: Java) -> Diagnosis:
    """Check that Java starts."""
    what = f"{found.version} at {found.home}, found by {found.origin}"
    try:
        command = [str(found.command), "-version"]
        done = subprocess.run(command, capture_output=True, timeout=_ANSWERS_WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Diagnosis("java", "bad", f"{what}: {error}", "reinstall it, or set JAVA_HOME")
    if done.returncode:
        why = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()[-1:]
        what = f"{what}, does not start: {''.join(why)}"
        return Diagnosis("java", "bad", what, "reinstall it, or set JAVA_HOME")
    return Diagnosis("java", "ok", what)


def archive(found: Java) -> Diagnosis:
    """Check that there is an archive of Spark's classes for this Java."""
    path = archive_path(found)
    if path.exists():
        return Diagnosis("archive", "ok", f"{path.stat().st_size >> 20} MB")
    what = "there is no class archive for this Java: Spark takes twice as long to start"
    return Diagnosis("archive", "warn", what, f"{_PREPARE} makes it, in about a minute")


def shell() -> Diagnosis:
    """Find the shell that runs Spark's start script."""
    if found := shutil.which("bash"):
        return Diagnosis("bash", "ok", found)
    what = "Spark's start script is for bash, and there is none on PATH"
    return Diagnosis("bash", "bad", what, "install bash, or correct PATH")


def jars() -> Diagnosis:
    """Check that every locked jar is cached with the right checksum."""
    locked = len(read_lock(LOCK))
    if altered := altered_jars():
        what = f"not what the lock says: {listed(jar.file_name for jar in altered)}"
        return Diagnosis(
            "jars", "bad", what, f"{_PREPARE} removes them; run again, it downloads them"
        )
    if missing := missing_jars():
        what = f"{len(missing)} of {locked} are not in the cache: a start has to download them"
        return Diagnosis("jars", "warn", what, f"{_PREPARE} downloads them now")
    return Diagnosis("jars", "ok", f"{locked} locked, cached, checksums right")


def packages() -> Diagnosis:
    """Check the installed packages against the versions that Millstream requires."""
    wrong = [fault for line in requires("millstream") or () if (fault := _unmet(line))]
    if wrong:
        return Diagnosis("packages", "bad", "; ".join(wrong), "`pip install --upgrade millstream`")
    names = ("pyspark", "pandas", "pyarrow", "deltalake")
    what = ", ".join(f"{name} {version(name)}" for name in names)
    return Diagnosis("packages", "ok", f"Python {platform.python_version()}, {what}")


def workers(master: str) -> Diagnosis:
    """Return which Python the workers of a master run."""
    mine = f"Python {platform.python_version()}"
    if is_local(master):
        return Diagnosis("workers", "ok", f"{mine}, the same as here")
    theirs = os.environ.get("PYSPARK_PYTHON")
    what = f"the workers of {master} run {theirs or 'the python3 on their PATH'}"
    wanted = f"{mine.rpartition('.')[0]} with millstream in it"
    fix = f"make sure that this is {wanted}, and set PYSPARK_PYTHON to its path"
    return Diagnosis("workers", "warn", what, fix)


def memory() -> Diagnosis:
    """Compare the free memory with what Spark's JVM may use."""
    wanted, total, free = driver_memory_mb(), memory_mb(), _available_mb()
    what = f"{total} MB, {free} MB free; Spark takes up to {wanted} MB"
    if free >= wanted:
        return Diagnosis("memory", "ok", what)
    fix = 'end other programs, or set a smaller "spark.driver.memory" in millstream.toml'
    return Diagnosis("memory", "warn", what, fix)


def storage(subject: str, folder: Path) -> Diagnosis:
    """Check that a folder, or the one it would be created in, is writable and has space."""
    place = _existing(folder)
    try:
        with tempfile.TemporaryFile(dir=place):
            free_gb = shutil.disk_usage(place).free / 2**30
    except OSError as error:
        what = f"{folder} cannot be written: {error.strerror}"
        return Diagnosis(
            subject, "bad", what, f"choose another {subject}, or correct its permissions"
        )
    what = f"{folder}, {free_gb:.1f} GB free"
    if free_gb < _LEAST_FREE_GB:
        return Diagnosis(subject, "bad", what, "free some space")
    if free_gb < _LITTLE_FREE_GB:
        return Diagnosis(subject, "warn", what, "free some space")
    return Diagnosis(subject, "ok", what)


def ports() -> Diagnosis:
    """Listen on a free port of this machine and call it, as Python and the JVM do."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError as error:
        what = f"127.0.0.1 cannot be listened on and called: {error}"
        return Diagnosis("ports", "bad", what, "allow connections over the loopback interface")
    return Diagnosis("ports", "ok", "free ports on 127.0.0.1")


def clock(folder: Path) -> Diagnosis:
    """Check that the clock is plausible and agrees with that of the file system."""
    now = datetime.now(UTC)
    what = f"{now:%Y-%m-%d %H:%M:%S} UTC, zone {time.tzname[0]}"
    if now < _BUILT:
        what = f"{what}: in the past, so every event would be in the future"
        return Diagnosis("clock", "bad", what, "set the clock")
    try:
        with tempfile.TemporaryFile(dir=_existing(folder)) as file:
            ahead_s = os.fstat(file.fileno()).st_mtime - time.time()
    except OSError:
        return Diagnosis("clock", "ok", what)
    if abs(ahead_s) > _DRIFT_S:
        what = f"the file system of {folder} is {ahead_s:+.0f} s off this machine's clock"
        return Diagnosis("clock", "warn", what, "set both clocks by the same time server")
    return Diagnosis("clock", "ok", what)


def host_name() -> Diagnosis:
    """Resolve the name of this machine, as Spark does at every start."""
    name = socket.gethostname()
    error = within(_NAME_WITHIN_S, lambda: socket.getaddrinfo(name, None))
    if error is None:
        return Diagnosis("host name", "ok", name)
    what = f"{name!r} is not known: {error.strerror}"
    fix = f"add `127.0.0.1 {name}` to /etc/hosts, or export SPARK_LOCAL_IP=127.0.0.1"
    return Diagnosis("host name", "bad", what, fix)


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.is_dir())


def _available_mb() -> int:
    meminfo = Path("/proc/meminfo")
    found = meminfo.exists() and re.search(r"MemAvailable:\s+(\d+)", meminfo.read_text())
    return min(int(found[1]) >> 10, memory_mb()) if found else memory_mb()


def _unmet(requirement: str) -> str | None:
    """Return what is wrong with the installed package that a requirement names; None if nothing."""
    wanted, _, condition = requirement.partition(";")
    parsed = re.fullmatch(r"\s*([\w.-]+)\s*(.*?)\s*", wanted)
    if "extra" in condition or parsed is None:
        return None
    name, clauses = parsed.groups()
    try:
        got = version(name)
    except PackageNotFoundError:
        return f"{name} is not installed"
    met = all(_satisfies(got, clause) for clause in clauses.split(",") if clause)
    return None if met else f"{name} is {got}, not {clauses}"


def _satisfies(got: str, clause: str) -> bool:
    """Return whether a version satisfies one clause.

    >>> _satisfies("2.10", ">=2.2"), _satisfies("3.0", "<3"), _satisfies("4.2.0", "==4.2.0")
    (True, False, True)
    """
    parsed = re.fullmatch(r"\s*(>=|<|==)\s*([\d.]+)\s*", clause)
    if parsed is None:
        return True
    mine, theirs = (tuple(map(int, re.findall(r"\d+", text))) for text in (got, parsed[2]))
    mine += (0,) * (len(theirs) - len(mine))
    kept = mine[: len(theirs)]
    return {">=": mine >= theirs, "<": mine < theirs, "==": kept == theirs}[parsed[1]]
