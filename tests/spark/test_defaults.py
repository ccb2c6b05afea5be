from __future__ import annotations

from pathlib import Path

from millstream.spark.defaults import settings

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
