"""Topics of Kafka, written in transactions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.serve.fence import Place
from millstream.serve.option import keyless_update
from millstream.settings.secret import revealed
from millstream.systems.record_source import format_fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Store

WRITTEN = ("json", "text", "raw")
"""Formats of records that can be written."""
_BYTES = ("string", "binary")
_HEADERS = tuple(f"array<struct<key:string,value:{kind}>>" for kind in reversed(_BYTES))
_FOR_CLIENTS = "kafka."
"""What the options begin with that are for Kafka's client, not for Spark."""
_IN_JAAS = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


class RecordFormat:
    """The format of records, and the envelope that describes changes."""

    __slots__ = ("envelope", "format")

    def __init__(self, form: str, envelope: str | None = None) -> None:
        self.format, self.envelope = form, envelope


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: readers of committed records see whole batches, each once."""

    name: str
    servers: str
    records: RecordFormat
    key: tuple[str, ...] = ()
    delete_when: str | None = None
    options: Mapping[str, str | int | bool] | None = None

    @property
    def newest_by(self) -> None:
        """A topic cannot be asked what it holds for a key."""
        return

    @property
    def evolve(self) -> bool:
        """Records have whatever fields they are given."""
        return True

    @property
    def keeps_every_row(self) -> bool:
        """Two records with one key follow each other."""
        return True

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """Each row once, for readers of committed records."""
        return "exactly once"

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:
        """A format that cannot be written, an update without a key, a mode that replaces."""
        if self.records.format not in WRITTEN:
            yield format_fault(f"serve {serve!r}", self.records.format, WRITTEN, at)
        yield from keyless_update("Kafka", self, serve, mode, at)
        why = use = ""
        if mode == "complete":
            why = "mode='complete' replaces all rows, and what is in a topic stays there"
            use = "use mode='update', or serve it to SQLite, Postgres or DeltaPath"
        elif self.records.envelope and self.records.format != "json":
            why = f"an envelope is JSON, and format={self.records.format!r}"
            use = "leave envelope or format out"
        if why:
            yield fault("STORE_MODE", at=at, serve=serve, store="Kafka", why=why, use=use)

    def columns(self) -> tuple[str, ...]:
        """What text and raw records are made of."""
        return () if self.records.format == "json" else ("value",)

    def types(self) -> Mapping[str, tuple[str, ...]]:
        """What text and raw records can be made of."""
        if self.records.format == "json":
            return {}
        key = {} if self.key else {"key": _BYTES}
        return {"value": _BYTES} | ({**key, "headers": _HEADERS} if self.is_raw else {})

    @property
    def is_raw(self) -> bool:
        """Whether an answer has Kafka's own columns."""
        return self.records.format == "raw"

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Do nothing: `Kafka` has checked the topic, and `open` checks it again."""

    def open(self, shape: Shape, driver: Driver) -> Store:
        """Connect; create the topic of fences if it is not there."""
        from millstream.systems.kafka.sink import TopicStore

        return TopicStore(self, shape, driver)

    def place(self, dataset: str) -> Place:  # noqa: ARG002
        """Name the topic, as errors do."""
        tool = f"`kafka-topics.sh --bootstrap-server {self.servers} --delete --topic {self.name}`"
        return Place(f"Kafka topic {self.name!r} at {self.servers}", f"{tool} and create it again")

    @property
    def client(self) -> dict[str, str | int | bool]:
        """The settings of the client, by the names that librdkafka has for them.

        >>> login = 'ScramLoginModule required username="me" password="***";'
        >>> options = {"kafka.sasl.jaas.config": login}
        >>> topic = Topic("t", "k:9092", RecordFormat("json"), options=options)
        >>> topic.client
        {'bootstrap.servers': 'k:9092', 'sasl.username': 'me', 'sasl.password': '***'}
        """
        settings: dict[str, str | int | bool] = {"bootstrap.servers": revealed(self.servers)}
        for name, value in (self.options or {}).items():
            if name == "kafka.sasl.jaas.config":
                found = _IN_JAAS.findall(str(revealed(value)))
                settings |= {f"sasl.{word}": text for word, text in found}
            elif name.startswith(_FOR_CLIENTS):
                settings[name.removeprefix(_FOR_CLIENTS)] = revealed(value)
        return settings
