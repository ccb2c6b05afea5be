"""Errors of the surroundings: Java, jars, Spark, brokers, disks and other drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import ClusterError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

_INSTALL_JAVA = (
    "`apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
    "`brew install openjdk@17` (macOS), "
    '`pip install "millstream[java]"` (anywhere)'
)


class JavaMissingError(ClusterError):
    """There is no Java on this machine, or not where `JAVA_HOME` says."""

    code = "JAVA_MISSING"

    def __init__(self, *, supported: Sequence[int], java_home: str | None = None) -> None:
        self.java_home = java_home
        versions = " or ".join(str(version) for version in supported)
        where = f"at JAVA_HOME={java_home!r}" if java_home else "on this machine"
        super().__init__(
            f"Spark needs Java {versions}, and there is no Java {where}",
            fix=f"{_INSTALL_JAVA}, or set JAVA_HOME to a Java {versions}",
        )


class JavaVersionError(ClusterError):
    """The Java of this machine is one that Spark does not run on."""

    code = "JAVA_VERSION"

    def __init__(self, version: str, *, home: str, supported: Sequence[int]) -> None:
        self.version, self.home = version, home
        versions = " or ".join(str(version) for version in supported)
        super().__init__(
            f"Spark needs Java {versions}, got Java {version} at {home!r}",
            fix=f"{_INSTALL_JAVA}, or set JAVA_HOME to a Java {versions}",
        )


class JarChecksumError(ClusterError):
    """A jar is not the one that was locked."""

    code = "JAR_CHECKSUM"
    transient = True

    def __init__(self, coordinate: str, *, path: str, expected: str, actual: str) -> None:
        self.coordinate, self.path = coordinate, path
        super().__init__(
            f"jar {coordinate!r} has SHA-256 {actual}, the lock says {expected}",
            fix=f"{path!r} is deleted; start again to fetch it anew, and if it is wrong "
            "again, find out who changes it on the way",
        )


class JarUnavailableError(ClusterError):
    """A locked jar is neither in the cache nor to be had."""

    code = "JAR_UNAVAILABLE"
    transient = True

    def __init__(self, coordinates: Sequence[str], *, folder: str, log: str) -> None:
        self.coordinates = tuple(coordinates)
        super().__init__(
            f"not in the cache and not to be fetched: {', '.join(coordinates)}",
            fix="check the network; behind a proxy, set JAVA_TOOL_OPTIONS="
            "'-Dhttps.proxyHost=… -Dhttps.proxyPort=…'; without a network, copy the jars into "
            f"{folder!r} from the cache of another machine; what was tried is in {log!r}",
        )


class SparkStartError(ClusterError):
    """Spark does not start."""

    code = "SPARK_START"

    def __init__(self, reason: str, *, log: str) -> None:
        self.log = log
        super().__init__(
            f"Spark does not start: {reason}",
            fix=f"the last lines of {log!r} say why; `millstream doctor` looks at the machine",
        )


class DriverStillRunningError(ClusterError):
    """A driver was asked to stop and has not stopped in time."""

    code = "DRIVER_STILL_RUNNING"

    def __init__(self, *, pid: int, waited: str) -> None:
        super().__init__(
            f"pid {pid} was asked to stop and still runs after {waited}",
            fix="it finishes its batch first: wait again with a longer --wait; if it hangs, "
            f"`kill -9 {pid}` loses nothing that is committed",
        )


class ForeignSessionError(ClusterError):
    """A Spark session that Millstream did not open is in the way."""

    code = "FOREIGN_SESSION"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"this process already runs Spark session {name!r}, which Millstream did not open "
            "and which may lack its jars and settings",
            fix="call `.stop()` on that session first",
        )


class HomeUnusableError(ClusterError):
    """The home is not a folder that can be written."""

    code = "HOME_UNUSABLE"

    def __init__(self, home: str, *, why: str) -> None:
        super().__init__(f"home {home!r} cannot be used: {why}", fix="choose another --home")


class HomeDamagedError(ClusterError):
    """The manifest of the home cannot be read."""

    code = "HOME_DAMAGED"

    def __init__(self, file: str, *, why: str) -> None:
        super().__init__(
            f"{file!r} is damaged: {why}",
            fix="restore it from a backup, or move it away: the next run writes it again; "
            "the tables beside it are not affected",
        )


class OvertakenError(ClusterError):
    """Another driver took the home over; this one may write nothing more."""

    code = "OVERTAKEN"

    def __init__(self, table: str, *, mine: int, theirs: int) -> None:
        super().__init__(
            f"another driver took over (epoch {theirs}; this one has {mine}): "
            f"{table!r} was not written",
            fix="none needed: the other driver carries on; this one stops",
        )


class CheckpointResetError(ClusterError):
    """The table holds batches that its query's checkpoint knows nothing of."""

    code = "CHECKPOINT_RESET"

    def __init__(self, table: str, *, batch: int, checkpoint: str, knows: int) -> None:
        known = "none" if knows < 0 else f"batches up to {knows}"
        super().__init__(
            f"{table!r} holds batch {batch}, but its checkpoint knows {known}: "
            "running on would skip or repeat rows",
            fix=f"restore {checkpoint!r}; or `millstream checkpoint repair APP`, which writes it "
            "again from what has landed, or has the table computed again",
        )


class TableRestoredError(ClusterError):
    """The table lacks batches that its query's checkpoint has committed."""

    code = "TABLE_RESTORED"

    def __init__(self, table: str, *, batch: int, checkpoint: str, knows: int) -> None:
        held = "no batch" if batch < 0 else f"batches up to {batch}"
        super().__init__(
            f"{table!r} holds {held}, but its checkpoint has committed batch {knows}: "
            "the batches between are lost from the table",
            fix=f"restore the table as it was with {checkpoint!r}; or `millstream checkpoint "
            "repair APP`, which has it computed again from what it reads",
        )


class LandingUnbalancedError(ClusterError):
    """A batch would land another number of rows than it read."""

    code = "LANDING_UNBALANCED"
    transient = True

    def __init__(self, source: str, *, batch: int, read: int, landed: int) -> None:
        super().__init__(
            f"batch {batch} of {source!r} read {read} rows and would land {landed}; "
            "nothing of it was landed",
            fix="the input changed while it was read; the batch is tried again",
        )


class BrokerUnreachableError(ClusterError):
    """No Kafka broker answers."""

    code = "BROKER_UNREACHABLE"
    transient = True

    def __init__(self, servers: str, *, dataset: str, at: Location, why: str = "") -> None:
        super().__init__(
            f"{dataset}: no Kafka broker answers at {servers}{why and f': {why}'}",
            fix="start the broker, or mend bootstrap_servers",
            at=at.of("bootstrap_servers"),
        )


class SocketUnreachableError(ClusterError):
    """No server answers at the address of a socket."""

    code = "SOCKET_UNREACHABLE"
    transient = True

    def __init__(self, address: str, *, why: str) -> None:
        super().__init__(
            f"no server answers at {address}: {why}",
            fix="start the server, or mend host and port; it is tried again, and "
            f"`nc -lk {address.rpartition(':')[2]}` is one to try with",
        )


class SocketClosedError(ClusterError):
    """The server of a socket closed the connection."""

    code = "SOCKET_CLOSED"
    transient = True

    def __init__(self, address: str) -> None:
        super().__init__(
            f"the server at {address} closed the connection",
            fix="nothing to do: what was sent is kept, and the connection is tried again",
        )


class PortTakenError(ClusterError):
    """A receiver, or the console, cannot listen on its port."""

    code = "PORT_TAKEN"

    def __init__(
        self, address: str, *, listener: str, why: str, at: Location | None = None
    ) -> None:
        super().__init__(
            f"{listener} cannot listen on {address}: {why}",
            fix="give another port, or end what listens there",
            at=at,
        )


class InboxClosedError(ClusterError):
    """A receiver hands records over to an app that stops."""

    code = "INBOX_CLOSED"

    def __init__(self, source: str) -> None:
        super().__init__(
            f"source {source!r} takes no more: the app stops; the records may or may not be landed",
            fix="do not acknowledge them; hand them over again when the app runs",
        )


class ReceiverFailedError(ClusterError):
    """A receiver raised; it is called again."""

    code = "RECEIVER_FAILED"
    transient = True

    def __init__(self, source: str, *, cause: str, at: Location) -> None:
        super().__init__(
            f"the receiver of source {source!r} stopped: {cause}",
            fix="nothing landed is lost, and it is called again; mend the cause if it stays",
            at=at,
        )


class ClusterStartError(ClusterError):
    """The Spark cluster of a test does not start."""

    code = "CLUSTER_START"

    def __init__(self, cause: str, *, log: str) -> None:
        super().__init__(
            f"the Spark cluster for tests does not start: {cause}",
            fix=f"read {log}",
        )


class BrokerLostError(ClusterError):
    """The Kafka broker went away while a query was reading."""

    code = "BROKER_LOST"
    transient = True

    def __init__(self, query: str, *, at: Location) -> None:
        super().__init__(
            f"query {query!r}: no Kafka broker answers any more; what was committed is safe",
            fix="start the broker: the run goes on by itself, or start it again",
            at=at,
        )


class RecordsLostError(ClusterError):
    """Kafka has deleted records before they were read."""

    code = "RECORDS_LOST"

    def __init__(self, query: str, *, cause: str, at: Location) -> None:
        super().__init__(
            f"query {query!r}: Kafka no longer has the records that come next: {cause}",
            fix="bring the topic back, or set the option failOnDataLoss=False to go on without",
            at=at,
        )


class TopicMissingError(ClusterError):
    """The Kafka topic does not exist."""

    code = "TOPIC_MISSING"

    def __init__(
        self, topic: str, *, servers: str, dataset: str, topics: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"{dataset}: topic {topic!r} does not exist at {servers}",
            fix=f"{closest(topic, topics)}create the topic, or mend its name",
            at=at.of("topic"),
        )


class StorageFullError(ClusterError):
    """No space is left where the home is."""

    code = "STORAGE_FULL"
    transient = True

    def __init__(self, home: str) -> None:
        super().__init__(
            f"no space is left for home {home!r}; what was committed is safe",
            fix="free some space: the run goes on by itself, or start it again",
        )


class SparkFailedError(ClusterError):
    """A query failed inside Spark."""

    code = "SPARK_FAILED"
    transient = True

    def __init__(self, query: str, *, condition: str, cause: str, log: str) -> None:
        super().__init__(
            f"query {query!r} failed in Spark ({condition}): {cause}",
            fix=f"the whole trace is in {log}",
        )


class PythonLateError(ClusterError):
    """Python did not start in the time that Spark gives it."""

    code = "PYTHON_LATE"
    transient = True

    def __init__(self, query: str, *, log: str) -> None:
        super().__init__(
            f"query {query!r}: Python did not start within the 10 seconds that Spark gives it; "
            "what was committed is safe",
            fix="the run tries again by itself; give the machine less to do at once, "
            f"or look in {log} for why Python cannot start",
        )


class DriverLostError(ClusterError):
    """The JVM went away."""

    code = "DRIVER_LOST"

    def __init__(self, *, log: str) -> None:
        super().__init__(
            "Spark's JVM is gone; what was committed is safe",
            fix=f"start the app again; if memory ran out, raise spark.driver.memory (see {log})",
        )


class UnexpectedError(ClusterError):
    """Something happened that Millstream does not know."""

    code = "UNEXPECTED"

    def __init__(self, cause: str, *, trace: str) -> None:
        super().__init__(
            f"this should not happen: {cause}",
            fix=f"what was committed is safe; start again, and report the trace in {trace}",
        )


class QueryStoppedError(ClusterError):
    """Some queries of the run stopped for good."""

    code = "QUERY_STOPPED"

    def __init__(self, names: Sequence[str], *, stale: Sequence[str]) -> None:
        also = f"; stale because of it: {listed(stale)}" if stale else ""
        super().__init__(f"stopped for good: {listed(names)}{also}", fix="see the errors above")


class BatchNotBegunError(ClusterError):
    """A batch was not begun, because the query is being stopped."""

    code = "BATCH_NOT_BEGUN"
    transient = True

    def __init__(self, query: str, *, batch: int) -> None:
        super().__init__(
            f"batch {batch} of {query!r} was not begun: the query is being stopped",
            fix="none needed: the batch runs at the next start",
        )
