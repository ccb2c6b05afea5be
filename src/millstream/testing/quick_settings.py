"""Settings that make tests of a few rows faster, with the same results."""

from __future__ import annotations

QUICK = {
    "spark.sql.shuffle.partitions": "1",
    # Compiling a query takes longer than interpreting it for a few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A query polls as soon as a test adds rows, not after Spark's default delay.
    "spark.sql.streaming.pollingDelay": "20ms",
}
"""For a session of tests."""

WITHOUT_CHECKSUMS = {
    # Nobody damages the checkpoint of a script, and a second file for each of its files takes time.
    # Hadoop's own checksums stay: without them RocksDB cannot upload a snapshot.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""For the sessions of scripts, besides."""

SHORT_LIVED = {
    "JDK_JAVA_OPTIONS": " ".join(
        # A JVM that lives for seconds ends before the optimizing compiler pays off.
        ["-XX:TieredStopAtLevel=1", *(f"-D{name}={value}" for name, value in QUICK.items())]
    )
}
"""For the environment of a driver in a process of its own."""
