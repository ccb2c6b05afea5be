"""A real Kafka broker that lives as long as a test, and topics to fill."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from millstream.errors import BrokerStartError
from millstream.spark.jars import resolve
from millstream.spark.java import find_java
from millstream.spark.report import silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from millstream.spark.report import Report

LOCK = Path(__file__).with_name("kafka.lock")
"""The jars of the broker."""

_HOST = "127.0.0.1"
_STARTS_WITHIN_S = 60.0
_STOPS_WITHIN_S = 10.0
_JAVA_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_WHO_ARE_THE_BROKERS = struct.pack(">ihhihi", 14, 3, 1, 0, -1, 0)
"""Kafka's Metadata request, version 1, about no topic."""

_SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
log.retention.ms=-1
auto.create.topics.enable=false
# A killed broker is let in again only when its session is over.
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


class Broker:
    """One Kafka broker in a process of its own, with its data in a temporary folder.

    It keeps its port and its data when it is killed or stopped and started again; both go when the
    `with` ends.
    """

    def __init__(self, *, report: Report = silent) -> None:
        self._report = report
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-kafka-"))
        self._port, controller = free_ports()
        self._process: subprocess.Popen[bytes] | None = None
        self._command: tuple[str, ...] = ()
        settings = _SETTINGS.format(
            host=_HOST, port=self._port, controller=controller, folder=self._folder
        )
        self._settings.write_text(settings)
        self._folder.joinpath("log4j2.properties").write_text(_LOG4J)

    @property
    def servers(self) -> str:
        """Where it answers, as `bootstrap.servers` wants it."""
        return f"{_HOST}:{self._port}"

    @property
    def log(self) -> Path:
        """What it has to say."""
        return self._folder / "broker.log"

    def start(self) -> None:
        """Start, and wait until it answers.

        Raises:
            BrokerStartError: It ended, or does not answer.
        """
        began = time.monotonic()
        if not self._command:
            self._prepare()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, "kafka.Kafka", str(self._settings)], stdout=log, stderr=log
            )
        while not self._answers():
            ended = self._process.poll() is not None
            if ended or time.monotonic() - began > _STARTS_WITHIN_S:
                self.kill()
                raise BrokerStartError(last_words(self.log), log=str(self.log))
            time.sleep(0.05)
        self._report("kafka", f"started in {time.monotonic() - began:.1f} s at {self.servers}")

    def stop(self) -> None:
        """Stop as an operator would; kill if that takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End at once, as a machine that loses power does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Start again on the same port, with the same data."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _settings(self) -> Path:
        return self._folder / "server.properties"

    def _prepare(self) -> None:
        jars = resolve(LOCK, report=self._report)
        layout = f"-Dlog4j2.configurationFile={self._folder}/log4j2.properties"
        class_path = ("-cp", os.pathsep.join(map(str, jars)))
        command = (str(find_java().command), *_JAVA_FLAGS, layout, *class_path)
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        settings = ("-t", cluster, "-c", str(self._settings))
        with self.log.open("ab") as log:
            formatted = subprocess.run(
                [*command, "kafka.tools.StorageTool", "format", "--standalone", *settings],
                stdout=log,
                stderr=log,
                check=False,
            )
        if formatted.returncode != 0:
            raise BrokerStartError(last_words(self.log), log=str(self.log))
        self._command = command

    def _answers(self) -> bool:
        """Whether it knows itself as a broker that serves clients."""
        try:
            with socket.create_connection((_HOST, self._port), timeout=5) as connection:
                connection.sendall(_WHO_ARE_THE_BROKERS)
                answer = connection.makefile("rb").read(12)
        except OSError:
            return False
        return len(answer) == 12 and struct.unpack(">iii", answer)[2] > 0


class Topics:
    """The topics of a broker, reached through the Kafka client that a Spark session has."""

    def __init__(self, spark: SparkSession, servers: str) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._servers = servers

    def create(self, name: str, *, partitions: int = 1) -> None:
        """Create a topic."""
        clients = self._jvm.org.apache.kafka.clients
        self._ask("createTopics", clients.admin.NewTopic(name, partitions, 1))

    def delete(self, name: str) -> None:
        """Delete a topic with all its records."""
        self._ask("deleteTopics", name)

    def send(self, topic: str, *values: str | bytes | None, partition: int = 0) -> None:
        """Append records, and wait until the broker has them."""
        producer = self._producer({})
        try:
            self._send(producer, topic, values, partition)
        finally:
            producer.close()

    @contextmanager
    def sender(self, topic: str) -> Iterator[Callable[[str], None]]:
        """Give a function that appends a record without waiting; at the end all are there."""
        producer = self._producer({"linger.ms": "0"})
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord
        try:
            yield lambda value: producer.send(record(topic, value.encode()))
        finally:
            producer.close()

    def send_and_abort(self, topic: str, *values: str | bytes | None, partition: int = 0) -> None:
        """Append records in a transaction that is then aborted."""
        producer = self._producer({"transactional.id": uuid.uuid4().hex})
        try:
            producer.initTransactions()
            producer.beginTransaction()
            self._send(producer, topic, values, partition)
            producer.flush()  # what is still held back when it aborts is never sent
            producer.abortTransaction()
        finally:
            producer.close()

    def _ask(self, request: str, about: object) -> None:
        settings = self._settings({})
        admin = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        try:
            getattr(admin, request)(self._jvm.java.util.List.of(about)).all().get()
        finally:
            admin.close()

    def _send(
        self, producer: Any, topic: str, values: tuple[str | bytes | None, ...], partition: int
    ) -> None:
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        sent = [producer.send(record(topic, partition, None, value)) for value in encoded]
        for acknowledged in sent:
            acknowledged.get()

    def _producer(self, settings: dict[str, str]) -> Any:
        bytes_as_they_are = "org.apache.kafka.common.serialization.ByteArraySerializer"
        for part in ("key", "value"):
            settings[f"{part}.serializer"] = bytes_as_they_are
        return self._jvm.org.apache.kafka.clients.producer.KafkaProducer(self._settings(settings))

    def _settings(self, settings: dict[str, str]) -> Any:
        collected = self._jvm.java.util.HashMap()
        for name, value in {"bootstrap.servers": self._servers, **settings}.items():
            collected.put(name, value)
        return collected


def free_ports() -> tuple[int, int]:
    """Find two ports that nobody listens on."""
    with socket.socket() as one, socket.socket() as other:
        for taken in (one, other):
            taken.bind((_HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]


def last_words(log: Path) -> str:
    """Give the last line that is not of a trace."""
    lines = log.read_text(errors="replace").split("\n")
    spoken = (line for line in reversed(lines) if line and not line[0].isspace())
    return next(spoken, "it said nothing")
