"""Errors of the surroundings, as they are met."""

from __future__ import annotations

from millstream.errors import (
    BatchNotBegunError,
    BrokerLostError,
    BrokerUnreachableError,
    CheckpointResetError,
    ClusterStartError,
    DriverLostError,
    DriverStillRunningError,
    ForeignSessionError,
    HomeDamagedError,
    HomeUnusableError,
    InboxClosedError,
    JarChecksumError,
    JarUnavailableError,
    JavaMissingError,
    JavaVersionError,
    LandingUnbalancedError,
    Location,
    OvertakenError,
    PortTakenError,
    PythonLateError,
    QueryStoppedError,
    ReceiverFailedError,
    RecordsLostError,
    SocketClosedError,
    SocketUnreachableError,
    SparkFailedError,
    SparkStartError,
    StorageFullError,
    TableRestoredError,
    TopicMissingError,
    UnexpectedError,
)

AT = Location("app.py", 6)
HOME = "/srv/shop/.millstream/shop"
CACHE = "/home/ann/.cache/millstream"
DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
SAMPLES = (
    JavaMissingError(supported=[17, 21], java_home="/opt/java"),
    JavaMissingError(supported=[17, 21]),
    JavaVersionError("11.0.22", home="/usr/lib/jvm/java-11-openjdk-amd64", supported=[17, 21]),
    JarChecksumError(
        DELTA,
        path=f"{CACHE}/jars/delta-spark_4.2_2.13-4.4.0.jar",
        expected="9f86d081884c7d65",
        actual="60303ae22b998861",
    ),
    JarUnavailableError([DELTA], folder=f"{CACHE}/jars", log=f"{CACHE}/logs/jars.log"),
    SparkStartError(
        "org.apache.spark.SparkException: Could not parse Master URL: 'nonsense'",
        log=f"{HOME}/logs/spark.log",
    ),
    DriverStillRunningError(pid=4711, waited="60 s"),
    ForeignSessionError("mine"),
    HomeUnusableError("s3://bucket/shop", why="it is not a path of the local file system"),
    HomeUnusableError("/srv/other/shop", why="Permission denied"),
    HomeDamagedError(
        f"{HOME}/manifest", why="JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    ),
    OvertakenError("paid", mine=4, theirs=5),
    CheckpointResetError("paid", batch=7, checkpoint=f"{HOME}/checkpoints/paid", knows=-1),
    CheckpointResetError("paid", batch=7, checkpoint=f"{HOME}/checkpoints/paid", knows=3),
    TableRestoredError("clean", batch=0, checkpoint=f"{HOME}/checkpoints/clean", knows=1),
    TableRestoredError("clean", batch=-1, checkpoint=f"{HOME}/checkpoints/clean", knows=1),
    LandingUnbalancedError("orders", batch=7, read=1000, landed=998),
    BrokerUnreachableError("localhost:9092", dataset="source 'orders'", at=AT),
    BrokerUnreachableError(
        "localhost",
        dataset="source 'orders'",
        at=AT,
        why="Invalid url in bootstrap.servers: localhost",
    ),
    SocketUnreachableError("localhost:9999", why="[Errno 111] Connection refused"),
    SocketClosedError("localhost:9999"),
    PortTakenError(
        "127.0.0.1:7401",
        listener="source 'orders'",
        why="[Errno 98] Address already in use",
        at=AT,
    ),
    PortTakenError(
        "127.0.0.1:7400", listener="the console", why="[Errno 98] Address already in use"
    ),
    InboxClosedError("orders"),
    ReceiverFailedError(
        "orders", cause="ConnectionResetError: [Errno 104] Connection reset by peer", at=AT
    ),
    ClusterStartError(
        "java.net.BindException: Address already in use",
        log="/tmp/millstream-cluster-1/cluster.log",
    ),
    BrokerLostError("orders", at=AT),
    RecordsLostError(
        "orders", cause="Partition orders-0's offset was changed from 800 to 120", at=AT
    ),
    TopicMissingError(
        "order",
        servers="localhost:9092",
        dataset="source 'orders'",
        topics=["clicks", "orders"],
        at=AT,
    ),
    StorageFullError(HOME),
    SparkFailedError(
        "paid",
        condition="PYTHON",
        cause="ConnectionError: the service of lucky numbers does not answer",
        log=f"{HOME}/logs/spark.log",
    ),
    PythonLateError("visits", log=f"{HOME}/logs/spark.log"),
    DriverLostError(log=f"{HOME}/logs/spark.log"),
    UnexpectedError("RuntimeError: boo", trace=f"{CACHE}/logs/trace-20260501T120041-4711.txt"),
    QueryStoppedError(["paid", "orders"], stale=["daily"]),
    QueryStoppedError(["paid", "orders"], stale=[]),
    BatchNotBegunError("paid", batch=8),
)
