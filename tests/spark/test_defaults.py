from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import SparkConf, java_gateway

from millstream.spark import session
from millstream.spark.defaults import OWNED, memory_mb, settings

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


def test_memory_outside_the_jvm_is_bounded_and_the_bounds_can_be_set() -> None:
    conf = settings("local[3]", {}, jars=JARS, java_flags=())
    own = {"spark.executor.pyspark.memory": "9g"}

    rocksdb = "spark.sql.streaming.stateStore.rocksdb"
    assert conf[f"{rocksdb}.boundedMemoryUsage"] == "true"
    assert 128 <= int(conf[f"{rocksdb}.maxMemoryUsageMB"]) <= 1024
    assert conf["spark.executor.pyspark.memory"] == f"{max(memory_mb() // 2, 3 * 512)}m"
    assert not own.keys() & OWNED.keys()
    assert (
        settings("local[3]", own, jars=JARS, java_flags=())["spark.executor.pyspark.memory"] == "9g"
    )
    on_cluster = settings("yarn", {}, jars=JARS, java_flags=())
    assert on_cluster[f"{rocksdb}.boundedMemoryUsage"] == "true"
    assert "spark.executor.pyspark.memory" not in on_cluster


def test_the_executors_of_a_cluster_get_the_jars() -> None:
    conf = settings("spark://host:7077", {}, jars=JARS, java_flags=())

    assert conf["spark.jars"] == "/cache/a.jar,/cache/b.jar"
    assert "spark.driver.host" not in conf


@pytest.mark.parametrize(
    ("master", "said", "partitions"),
    [
        ("spark://host:7077", {}, 8),
        ("spark://host:7077", {"spark.executor.cores": "4"}, 8),
        ("spark://host:7077", {"spark.cores.max": "6", "spark.executor.instances": "9"}, 6),
        ("spark://host:7077", {"spark.executor.instances": "3", "spark.executor.cores": "2"}, 6),
        ("yarn", {}, 2),
        ("yarn", {"spark.executor.instances": "3", "spark.executor.cores": "4"}, 12),
        ("yarn", {"spark.dynamicAllocation.enabled": "true"}, 8),
        (
            "yarn",
            {
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "5",
                "spark.executor.cores": "2",
            },
            10,
        ),
        ("k8s://https://host:6443", {"spark.executor.cores": "4"}, 8),
        ("k8s://https://host:6443", {"spark.executor.instances": "500"}, 200),
        ("yarn", {"spark.executor.instances": "3", "spark.sql.shuffle.partitions": "7"}, 7),
    ],
)
def test_a_cluster_shuffles_into_as_many_partitions_as_the_app_has_cores(
    master: str, said: dict[str, str], partitions: int
) -> None:
    conf = settings(master, said, jars=JARS, java_flags=())

    assert conf["spark.sql.shuffle.partitions"] == str(partitions)


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


def test_a_worker_keeps_a_lower_limit_that_the_machine_sets() -> None:
    code = """
import resource
from millstream.spark.workers import _limit_memory
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
for megabytes in (4096, 512):
    _limit_memory(megabytes)
    print(resource.getrlimit(resource.RLIMIT_DATA)[0] >> 20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["1024", "512"]
