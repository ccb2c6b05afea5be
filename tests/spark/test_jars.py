from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest
from tests.faults import raises

from millstream.spark import jars
from millstream.spark.cache import cache_dir
from millstream.spark.jars import LOCK, read_lock, resolve, spark_jars

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CONTENT = b"a jar"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of one jar."""
    digest = hashlib.sha256(CONTENT).hexdigest()
    path = tmp_path / "test.lock"
    path.write_text(f'[[jar]]\ncoordinate = "org.test:thing:1.0"\nsha256 = "{digest}"\n')
    return path


@pytest.fixture
def jar(cache: Path) -> Path:
    """That jar, in the cache."""
    path = cache / "jars" / "thing-1.0.jar"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return path


def change(jar: Path) -> None:
    """Write another content of the same size, later: some systems stamp files by the tick."""
    at = jar.stat().st_mtime_ns + 1_000_000_000
    jar.write_bytes(b"b jar")
    os.utime(jar, ns=(at, at))


def test_cached_jars_come_in_the_order_of_the_lock_without_network(lock: Path, jar: Path) -> None:
    reported = []

    assert resolve(lock, report=lambda *fact: reported.append(fact)) == (jar,)
    assert reported == [("jars", "1 locked, cached")]


def test_a_tampered_jar_is_deleted_and_reported(lock: Path, jar: Path) -> None:
    resolve(lock)
    change(jar)

    with raises("JAR_CHECKSUM") as caught:
        resolve(lock)

    assert not jar.exists()
    assert str(caught.value) == (
        "[JAR_CHECKSUM] jar 'org.test:thing:1.0' has SHA-256 "
        f"{hashlib.sha256(b'b jar').hexdigest()}, the lock says "
        f"{hashlib.sha256(CONTENT).hexdigest()}\n"
        f"  fix: '{jar}' is deleted; start again to download it, and if it is wrong again, "
        "find out what changes it on the way"
    )


def test_a_jar_is_hashed_again_only_when_it_was_touched(lock: Path, jar: Path) -> None:
    resolve(lock)
    before = jar.stat()
    jar.write_bytes(b"b jar")
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))

    resolve(lock)

    change(jar)
    with raises("JAR_CHECKSUM"):
        resolve(lock)


def test_a_fetched_jar_lands_in_the_cache_only_if_it_is_right(
    lock: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(_: Sequence[jars.Jar], folder: Path) -> Iterator[str]:
        (folder / "thing-1.0.jar").write_bytes(b"b jar")
        yield "\t[SUCCESSFUL ] org.test#thing;1.0!thing.jar (1ms)\n"

    monkeypatch.setattr(jars, "_ivy", wrong)

    with raises("JAR_CHECKSUM"):
        resolve(lock)

    assert list((cache / "jars").glob("*.jar")) == []


def test_a_jar_that_cannot_be_had_is_named(
    lock: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        jars, "_ivy", lambda _, folder: iter(["\t:: org.test#thing;1.0: not found\n"])
    )

    with raises("JAR_UNAVAILABLE") as caught:
        resolve(lock)

    log = cache / "logs" / "jars.log"
    assert str(caught.value) == (
        "[JAR_UNAVAILABLE] neither cached nor downloadable: org.test:thing:1.0\n"
        "  fix: check the network; behind a proxy, set JAVA_TOOL_OPTIONS="
        "'-Dhttps.proxyHost=… -Dhttps.proxyPort=…'; without a network, copy the jars into "
        f"'{cache / 'jars'}' from the cache of another machine; what was tried is in '{log}'"
    )
    assert "not found" in log.read_text()


def test_our_lock_repeats_nothing_that_pyspark_brings() -> None:
    brought = {path.name.rpartition("-")[0] for path in spark_jars().glob("*.jar")}

    ours = [jar.file_name.rpartition("-")[0] for jar in read_lock(LOCK)]

    assert len(set(ours)) == len(ours)
    assert not brought & set(ours)


def test_the_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_dir() == tmp_path / "cache"

    monkeypatch.delenv("MILLSTREAM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "millstream"

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "millstream"
