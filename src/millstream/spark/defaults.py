"""The settings Spark gets from us, and why; the user's own win over all but those we own."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MARK = "spark.millstream"
"""Marks a session as ours."""

_JOINED = {
    "spark.driver.extraClassPath": os.pathsep,
    "spark.driver.extraJavaOptions": " ",
    "spark.jars": ",",
    "spark.sql.extensions": ",",
}
"""Settings that are lists: the user's are added to ours instead of replacing them."""

_EVERYWHERE = {
    MARK: "true",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # State: on disk; a batch uploads what changed instead of a snapshot; damage is found by
    # checksums (which only format 2 has) and repaired from older snapshots.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "true",
    "spark.sql.streaming.stateStore.autoSnapshotRepair.enabled": "true",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "true",
    # Where two operators of a query have the same input, the second would read the shuffle of the
    # first, and Spark propagates watermarks no further than that: it would wait for ever.
    "spark.sql.exchange.reuse": "false",
    # Real-time mode: its progress is checkpointed at most this often; Spark's own minimum is 5 s.
    "spark.sql.streaming.realTimeMode.minBatchDuration": "1000",
    # Python: a record may be 10 MB, so a batch of them is bounded in bytes as well.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "millstream.spark.workers",
    # Else Arrow's allocator reserves a gigabyte as if it were used, and the limit counts it.
    "spark.executorEnv.MIMALLOC_ARENA_EAGER_COMMIT": "0",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}

_JVM = (
    "-XX:+UseParallelGC",
    # The optimising compiler takes half of two cores at the start; let it wait for hotter code.
    "-XX:Tier4InvocationThreshold=30000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=60000",
    "-XX:Tier4BackEdgeThreshold=200000",
)

_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.stopTimeout": "60s",
    # The default one runs the `chmod` program for each file of a checkpoint: 120 ms a batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
_UNKNOWN_CORES = 8
_MOST_PARTITIONS = 200
"""Spark's default: in small batches, each partition costs more than it saves."""

_STATE = "checkpoints are inspected and repaired in this format only"
_LOSES_ROWS = "rows would be lost without an error"
_WRONG_ROWS = "batch, stream and replay would differ"

OWNED: Mapping[str, str] = {
    MARK: "it marks sessions as Millstream's",
    "spark.master": "it has a key of its own, master",
    "spark.app.name": "it is the name of the app",
    "spark.sql.catalog.spark_catalog": "tables are Delta tables",
    "spark.sql.session.timeZone": "event times are judged in UTC",
    "spark.sql.parquet.outputTimestampType": "Delta tables hold microseconds",
    "spark.python.daemon.module": "the workers are Millstream's",
    "spark.sql.streaming.checkpointLocation": "checkpoints are in the home",
    "spark.sql.streaming.checkpointFileManagerClass": "a checkpoint is written in one step or not",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "damage is found by it",
    **{name: _STATE for name in _EVERYWHERE if name.startswith("spark.sql.streaming.stateStore.")},
    "spark.sql.exchange.reuse": _LOSES_ROWS,
    "spark.sql.streaming.multipleWatermarkPolicy": _WRONG_ROWS,
    "spark.sql.streaming.unsupportedOperationCheck": _WRONG_ROWS,
    "spark.sql.streaming.statefulOperator.checkCorrectness.enabled": _WRONG_ROWS,
    "spark.sql.files.ignoreCorruptFiles": _LOSES_ROWS,
    "spark.sql.files.ignoreMissingFiles": _LOSES_ROWS,
}
"""Settings that no profile can change, and why."""


def is_on_command_line(name: str) -> bool:
    """Return whether a setting must be on the command line of the JVM, which anyone can read."""
    return name.startswith("spark.driver.") or name in _JOINED


def with_retries(master: str) -> str:
    """Have failed tasks retried, as on a cluster; plain `local[N]` does not retry.

    >>> with_retries("local[2]"), with_retries("local"), with_retries("yarn")
    ('local[2,4]', 'local[1,4]', 'yarn')
    """
    if master == "local":
        return "local[1,4]"
    return re.sub(r"^local\[(\d+|\*)\]$", r"local[\1,4]", master)


def is_local(master: str) -> bool:
    """Return whether Spark runs inside its driver, on this machine alone."""
    return master == "local" or master.startswith("local[")


def settings(
    master: str, conf: Mapping[str, str], *, jars: Sequence[Path], java_flags: Sequence[str]
) -> dict[str, str]:
    """Combine our settings for this master with the user's, which win."""
    ours = {**_EVERYWHERE, "spark.master": with_retries(master)}
    ours["spark.driver.memory"] = f"{driver_memory_mb()}m"
    # One bound for the state of all queries, instead of up to 128 MB for each partition of each.
    ours[f"{_ROCKSDB}.boundedMemoryUsage"] = "true"
    # The class archive holds only what the class path names, so `spark.jars` alone is slower.
    ours["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    # Parallel takes about 15 % less processor time than G1 in small batches on two cores.
    ours["spark.driver.extraJavaOptions"] = shlex.join((*_JVM, *java_flags))
    if is_local(master):
        cores = str(_cores(master))
        ours |= _LOCAL | {"spark.sql.shuffle.partitions": cores, "spark.default.parallelism": cores}
        # All workers of this machine together; Spark divides by what it takes for the cores.
        ours["spark.executor.cores"] = cores
        ours["spark.executor.pyspark.memory"] = f"{workers_memory_mb(_cores(master))}m"
        ours[f"{_ROCKSDB}.maxMemoryUsageMB"] = str(state_memory_mb())
    else:
        partitions = str(min(cluster_cores(master, conf), _MOST_PARTITIONS))
        ours["spark.jars"] = ",".join(map(str, jars))
        ours["spark.sql.shuffle.partitions"] = partitions
        ours["spark.databricks.delta.snapshotPartitions"] = partitions
    both = {
        key: separator.join((ours[key], conf[key]))
        for key, separator in _JOINED.items()
        if key in ours and key in conf
    }
    return ours | dict(conf) | both


def cluster_cores(master: str, conf: Mapping[str, str]) -> int:
    """Count the cores an app gets on a cluster, as far as its settings say.

    >>> cluster_cores("yarn", {"spark.executor.instances": "3", "spark.executor.cores": "4"})
    12
    >>> cluster_cores("spark://host:7077", {"spark.cores.max": "6"})
    6
    """
    is_elastic = conf.get("spark.dynamicAllocation.enabled") == "true"
    count = "spark.dynamicAllocation.maxExecutors" if is_elastic else "spark.executor.instances"
    # A standalone master gives all its cores, a number not known here; others give two executors.
    some = None if is_elastic or master.startswith("spark:") else 2
    executors, most = _number(conf, count, some), _number(conf, "spark.cores.max", None)
    if executors is None or most is not None:
        return most or _UNKNOWN_CORES
    return executors * (_number(conf, "spark.executor.cores", 1) or 1)


def _number(conf: Mapping[str, str], key: str, default: int | None) -> int | None:
    value = str(revealed(conf.get(key, "")))
    return int(value) if value.isdecimal() else default


def _cores(master: str) -> int:
    """Count the cores a local master uses.

    >>> _cores("local[3,4]")
    3
    """
    number = re.search(r"\d+", master.partition(",")[0])
    return int(number[0]) if number else os.cpu_count() or 1


def driver_memory_mb() -> int:
    """Return the driver memory: a quarter of the machine (or container), from 1 to 8 GB."""
    return min(max(memory_mb() // 4, 1024), 8192)


def workers_memory_mb(cores: int) -> int:
    """Return what all Python workers of this machine may take: half of its memory.

    One that works for each core has 512 MB at least: 160 MB of it is what libraries take.
    """
    return max(memory_mb() // 2, 512 * cores)


def state_memory_mb() -> int:
    """Return what RocksDB may take for the state of all queries: from 128 MB to 1 GB."""
    return min(max(memory_mb() // 16, 128), 1024)


def memory_mb() -> int:
    """Return the memory of the machine, or of the container, in MB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (allowed := limit.read_text().strip()).isdigit():
        total = min(total, int(allowed))
    return total >> 20
