"""What a few rows do not need: settings by which tests take less time and show the same."""

from __future__ import annotations

QUICK = {
    "spark.sql.shuffle.partitions": "1",
    # To compile a query takes longer than to go through a few rows without.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A query looks for its rows at once when a test hands them over, not at its leisure.
    "spark.sql.streaming.pollingDelay": "20ms",
}
"""For a session of tests."""

UNSEALED = {
    # Nobody damages the checkpoint of a script, and a second file for each of its files takes time.
    # Hadoop's own checksums stay: without them RocksDB cannot upload a snapshot.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""For the sessions of scripts, besides."""

SHORT_LIVED = {
    "JDK_JAVA_OPTIONS": " ".join(
        # A JVM that lives for seconds does not earn back what the optimising compiler costs.
        ["-XX:TieredStopAtLevel=1", *(f"-D{name}={value}" for name, value in QUICK.items())]
    )
}
"""For the environment of a driver in a process of its own."""
