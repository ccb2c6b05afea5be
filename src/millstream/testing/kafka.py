"""A real Kafka broker that lives as long as a test, and topics to fill."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
import uuid
from base64 import urlsafe_b64encode
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.spark.jars import resolve
from millstream.spark.java import find_java
from millstream.spark.report import silent
from millstream.testing.server import HOST, Server, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

LOCK = Path(__file__).with_name("kafka.lock")
"""The jars of the broker."""

_JAVA_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_METADATA_REQUEST = struct.pack(">ihhihi", 14, 3, 1, 0, -1, 0)
"""Kafka's Metadata request, version 1, about no topic."""
_LEARNS_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.01

_SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},PROXIED://{host}:{proxied},SECURED://{host}:{secured},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port},PROXIED://{host}:{proxy},SECURED://{host}:{secured},CONTROLLER://{host}:{controller}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,SECURED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_shop="sesame";
log.dirs={folder}/data
log.retention.ms=-1
auto.create.topics.enable=false
# The controller accepts a killed broker again only when its session is over.
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


class Broker(Server):
    """One Kafka broker that is its own controller."""

    name = "Kafka"
    starts_within_s = 60.0
    stopped_by = signal.SIGTERM

    def __init__(self) -> None:
        super().__init__()
        self.proxied_port, self.proxy_port, self.secured_port = free_ports(3)
        """The first port advertises the second, where a `Proxy` may listen; the third accepts only
        the user `shop`, with the password `sesame`."""
        self.cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    @property
    def servers(self) -> str:
        """Where it answers, as `bootstrap.servers` wants it."""
        return f"{HOST}:{self.port}"

    def prepare(self) -> None:
        """Write its settings, and format its folder."""
        settings = _SETTINGS.format(
            host=HOST,
            port=self.port,
            proxied=self.proxied_port,
            proxy=self.proxy_port,
            secured=self.secured_port,
            controller=self.second_port,
            folder=self.folder,
        )
        self._settings.write_text(settings)
        self.folder.joinpath("log4j2.properties").write_text(_LOG4J)
        words = ("format", "--standalone", f"--cluster-id={self.cluster}")
        self.run(*self._java, "kafka.tools.StorageTool", *words, "-c", str(self._settings))

    def command(self) -> Sequence[str]:
        """Run it from its jars."""
        return [*self._java, "kafka.Kafka", str(self._settings)]

    def answers(self) -> bool:
        """Return whether it lists itself as a broker, and so serves clients."""
        try:
            with socket.create_connection((HOST, self.port), timeout=5) as connection:
                connection.sendall(_METADATA_REQUEST)
                answer = connection.makefile("rb").read(12)
        except OSError:
            return False
        return len(answer) == 12 and struct.unpack(">iii", answer)[2] > 0

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    @cached_property
    def _java(self) -> tuple[str, ...]:
        layout = f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties"
        class_path = ("-cp", os.pathsep.join(map(str, resolve(LOCK, report=silent))))
        return (str(find_java().command), *_JAVA_FLAGS, layout, *class_path)


def _wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until the broker has learned from its controller, which replies earlier."""
    until = time.monotonic() + _LEARNS_WITHIN_S
    while not is_so():
        assert time.monotonic() < until, "the broker does not hear from its controller"
        time.sleep(_LOOK_EVERY_S)


class Topics:
    """The topics of a broker, reached through the Kafka client that a Spark session has."""

    def __init__(self, spark: SparkSession, servers: str) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._servers = servers

    def create(self, name: str, *, partitions: int = 1) -> None:
        """Create a topic, and wait until the broker knows it."""
        with self._admin() as admin:
            new = self._class("clients.admin.NewTopic")(name, partitions, 1)
            admin.createTopics(self._list_of(new)).all().get()
            _wait_until(lambda: admin.listTopics().names().get().contains(name))

    def delete(self, name: str) -> None:
        """Delete a topic with all its records, and wait until the broker has forgotten it."""
        with self._admin() as admin:
            admin.deleteTopics(self._list_of(name)).all().get()
            _wait_until(lambda: not admin.listTopics().names().get().contains(name))

    def send(self, topic: str, *values: str | bytes | None, partition: int = 0) -> None:
        """Append records, and wait until the broker has them."""
        producer = self._producer({})
        try:
            self._send(producer, topic, values, partition)
        finally:
            producer.close()

    @contextmanager
    def sender(self, topic: str) -> Iterator[Callable[[str], None]]:
        """Return a function that appends a record without waiting; on exit all are there."""
        producer = self._producer({"linger.ms": "0"})
        record = self._class("clients.producer.ProducerRecord")
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

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        admin = self._class("clients.admin.AdminClient").create(self._settings({}))
        try:
            yield admin
        finally:
            admin.close()

    def _list_of(self, one: object) -> Any:
        return getattr(self._jvm, "java.util.List").of(one)

    def _class(self, name: str) -> Any:
        return getattr(self._jvm, f"org.apache.kafka.{name}")

    def _send(
        self, producer: Any, topic: str, values: tuple[str | bytes | None, ...], partition: int
    ) -> None:
        record = self._class("clients.producer.ProducerRecord")
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        sent = [producer.send(record(topic, partition, None, value)) for value in encoded]
        for acknowledged in sent:
            acknowledged.get()

    def _producer(self, settings: dict[str, str]) -> Any:
        byte_array_serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
        for part in ("key", "value"):
            settings[f"{part}.serializer"] = byte_array_serializer
        return self._class("clients.producer.KafkaProducer")(self._settings(settings))

    def _settings(self, settings: dict[str, str]) -> Any:
        collected = getattr(self._jvm, "java.util.HashMap")()
        for name, value in {"bootstrap.servers": self._servers, **settings}.items():
            collected.put(name, value)
        return collected
