from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.errors import JavaMissingError, JavaVersionError
from millstream.spark import java
from millstream.spark.java import find_java

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(home: Path, version: str) -> Path:
    """Write a `java` that knows nothing but its version."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    command.chmod(0o755)
    return home


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setattr(java, "_COMMON_PLACES", (f"{tmp_path}/jvm/*",))
    return tmp_path


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2"])
def test_java_home_comes_first(
    machine: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(machine / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "mine", version)))

    found = find_java()

    assert (found.home, found.version) == (machine / "mine", version)


def test_java_on_the_path_comes_next(machine: Path) -> None:
    fake_java(machine / "path", "17.0.15")
    fake_java(machine / "jvm" / "java-21", "21.0.2")

    assert find_java().home == machine / "path"


def test_an_unsuitable_java_on_the_path_is_passed_over_for_a_suitable_one(machine: Path) -> None:
    fake_java(machine / "path", "25")
    fake_java(machine / "jvm" / "java-11", "11.0.9")
    fake_java(machine / "jvm" / "java-21", "21.0.2")

    assert find_java().version == "21.0.2"


def test_the_release_file_is_believed_without_starting_java(machine: Path) -> None:
    home = fake_java(machine / "path", "11.0.9")
    (home / "release").write_text('IMPLEMENTOR_VERSION="Debian-17"\nJAVA_VERSION="17.0.15"\n')

    assert find_java().version == "17.0.15"


def test_no_java_says_what_to_install(machine: Path) -> None:
    with pytest.raises(JavaMissingError) as caught:
        find_java()

    assert str(caught.value) == (
        "[JAVA_MISSING] Spark needs Java 17 or 21, and there is no Java on this machine\n"
        "  fix: `apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
        "`brew install openjdk@17` (macOS), or set JAVA_HOME to a Java 17 or 21"
    )
    assert caught.value.exit_code == 3


def test_a_java_home_without_java_is_reported_not_passed_over(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(machine / "path", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    with pytest.raises(JavaMissingError, match="there is no Java at JAVA_HOME='/nowhere'"):
        find_java()


@pytest.mark.parametrize(
    ("told", "version"), [("1.8.0_392", "8.0"), ("11.0.9", "11.0.9"), ("25", "25")]
)
def test_a_java_that_spark_cannot_run_on_is_named(machine: Path, told: str, version: str) -> None:
    fake_java(machine / "path", told)

    with pytest.raises(JavaVersionError) as caught:
        find_java()

    assert str(caught.value) == (
        f"[JAVA_VERSION] Spark needs Java 17 or 21, got Java {version} at "
        f"'{machine / 'path'}'\n"
        "  fix: `apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
        "`brew install openjdk@17` (macOS), or set JAVA_HOME to a Java 17 or 21"
    )
