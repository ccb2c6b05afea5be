from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkConf, java_gateway

from millstream.spark import session
from millstream.spark.defaults import settings

if TYPE_CHECKING:
    import pytest

JARS = (Path("/cache/a.jar"), Path("/cache/b.jar"))


def test_settings_of_the_user_win() -> None:
    conf = settings("local[2]", {"spark.ui.enabled": "true"}, jars=JARS, java_flags=())

    assert conf["spark.ui.enabled"] == "true"


def test_lists_of_the_user_are_added_to_ours() -> None:
    theirs = {"spark.sql.extensions": "their.Extension", "spark.driver.extraJavaOptions": "-Dx=y"}

    conf = settings("local[2]", theirs, jars=JARS, java_flags=("-Xshare:auto",))

    assert conf["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension,their.Extension"
    options = conf["spark.driver.extraJavaOptions"]
    assert options.startswith("-XX:+UseParallelGC ")
    assert options.endswith(" -Xshare:auto -Dx=y")


def test_a_local_master_shuffles_into_as_many_partitions_as_it_has_cores() -> None:
    conf = settings("local[3]", {}, jars=JARS, java_flags=())

    assert conf["spark.master"] == "local[3,4]"
    assert conf["spark.sql.shuffle.partitions"] == "3"
    assert conf["spark.driver.host"] == "127.0.0.1"
    assert "spark.jars" not in conf


def test_the_executors_of_a_cluster_get_the_jars() -> None:
    conf = settings("spark://host:7077", {}, jars=JARS, java_flags=())

    assert conf["spark.jars"] == "/cache/a.jar,/cache/b.jar"
    assert "spark.driver.host" not in conf
    assert "spark.sql.shuffle.partitions" not in conf


def test_what_is_secret_is_not_on_the_command_line_of_the_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[SparkConf] = []
    monkeypatch.setattr(java_gateway, "launch_gateway", lambda conf, _: launched.append(conf))
    conf = SparkConf(loadDefaults=False).setAll([("spark.a", "seen"), ("spark.b", "hunter2")])

    session._launch(conf, tmp_path / "spark.log", hidden=["spark.b"])

    assert [sorted(dict(given.getAll())) for given in launched] == [
        ["spark.a", "spark.driver.extraJavaOptions"]
    ]
    assert conf.get("spark.b") == "hunter2"
