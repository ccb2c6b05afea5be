"""The page on clusters holds as far as it can be read: there is no cluster to run it on."""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path

import pyspark
import pytest
from tests.test_docs import ROOT, blocks

from millstream.loading import load

PAGE = ROOT / "docs" / "how-to" / "cluster.md"
PROFILES = ("standalone", "yarn", "elastic", "k8s")


@pytest.fixture
def app(tmp_path: Path) -> str:
    written = dict(blocks(PAGE))
    (tmp_path / "millstream.toml").write_text(written["toml"])
    (tmp_path / "app.py").write_text(written["python"])
    return str(tmp_path / "app.py")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_is_whole_and_its_executors_have_eight_cores(app: str, profile: str) -> None:
    loaded = load(app, profile)

    settings = loaded.settings()

    assert loaded.faults == ()
    assert loaded.home().path == Path("/shared/shop")
    assert settings["master"].value in PAGE.read_text()
    assert settings["spark.sql.shuffle.partitions"].value == "8"


def test_the_profiles_that_commands_name_are_those_of_the_file() -> None:
    named = re.findall(r"--profile[ ,]+(\w+)", PAGE.read_text())

    assert {*named} == {*PROFILES} == {*tomllib.loads(dict(blocks(PAGE))["toml"])["profile"]}


def test_spark_knows_every_setting_of_the_profiles() -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    known = b""
    for name in ("core", "yarn", "kubernetes"):
        [jar] = jars.glob(f"spark-{name}_*.jar")
        with zipfile.ZipFile(jar) as classes:
            known += b"".join(
                classes.read(entry) for entry in classes.namelist() if "config" in entry.lower()
            )
    written = tomllib.loads(dict(blocks(PAGE))["toml"])["profile"].values()

    for key in {key for profile in written for key in profile["spark"]}:
        sought = re.sub(r"(\.volumes\.).*", r"\1", key)
        assert sought.encode() in known, key
