"""The class archive: Spark's classes as the JVM lays them out, made once, mapped at each start.

Loading classes is most of Spark's start-up; a class-data-sharing archive saves about half of it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from millstream.spark.cache import cache_dir, exclusive
from millstream.spark.jars import LOCK, spark_jars
from millstream.spark.report import silent

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.spark.java import Java
    from millstream.spark.report import Report


def archive_path(java: Java) -> Path:
    """Return the path of the archive for this Java, this Spark and these jars."""
    facts = (java.home, java.version, version("pyspark"), spark_jars(), LOCK.read_text())
    key = hashlib.sha256("\n".join(map(str, facts)).encode()).hexdigest()[:16]
    return cache_dir() / "archives" / f"{key}.jsa"


def archive_flags(java: Java) -> tuple[str, ...]:
    """Return the JVM flags that use the archive, if there is one; a bad one is ignored."""
    path = archive_path(java)
    if not path.exists():
        return ()
    return (
        f"-XX:SharedArchiveFile={path}",
        "-Xshare:auto",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
    )


def recording_flags(path: Path) -> tuple[str, ...]:
    """Return the JVM flags that write an archive of the loaded classes on exit."""
    return (f"-XX:ArchiveClassesAtExit={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def make_archive(java: Java, *, report: Report = silent) -> None:
    """Make the archive unless it exists. Without one Spark only starts slower."""
    path = archive_path(java)
    with exclusive(path.with_suffix(".lock")):
        if path.exists():
            report("archive", "cached")
            return
        report("archive", "recording Spark's classes, once, about a minute: halves each start")
        draft = path.with_suffix(".draft")
        subprocess.run(
            [sys.executable, "-m", "millstream.spark.training", draft],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        if draft.exists():
            draft.replace(path)
            report("archive", f"made, {path.stat().st_size >> 20} MB")
        else:
            report("archive", "not made: Spark works without it, and starts slower")
