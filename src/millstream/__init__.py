"""Continuous applications on Apache Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from millstream.settings import __version__ as __version__

if TYPE_CHECKING:
    from millstream.alert.log import Log as Log
    from millstream.alert.mail import Email as Email
    from millstream.alert.webhook import Webhook as Webhook
    from millstream.app import App as App
    from millstream.connectors.console import Console as Console
    from millstream.connectors.custom import Custom as Custom
    from millstream.connectors.delta import Delta as Delta
    from millstream.connectors.deltapath import DeltaPath as DeltaPath
    from millstream.connectors.files import Files as Files
    from millstream.connectors.generator import Generator as Generator
    from millstream.connectors.http import Http as Http
    from millstream.connectors.inbox import Inbox as Inbox
    from millstream.connectors.kafka import Kafka as Kafka
    from millstream.connectors.memory import Memory as Memory
    from millstream.connectors.rate import Rate as Rate
    from millstream.connectors.receiver import Receiver as Receiver
    from millstream.connectors.socket import Socket as Socket
    from millstream.connectors.table import Table as Table
    from millstream.model.dataset import AvroOptions as AvroOptions, CsvOptions as CsvOptions
    from millstream.operators import (
        Timer as Timer,
        absent as absent,
        dedup as dedup,
        join_as_of as join_as_of,
        join_within as join_within,
        match as match,
        pattern as pattern,
        reference as reference,
        salted as salted,
        stateful as stateful,
        top_k as top_k,
    )
    from millstream.sinks.files import FileSink as FileSink
    from millstream.sinks.function import (
        Batch as Batch,
        partition_sink as partition_sink,
        sink as sink,
    )
    from millstream.sinks.postgres import Postgres as Postgres
    from millstream.sinks.redis import Redis as Redis
    from millstream.sinks.sqlite import SQLite as SQLite

_ROOMS = {
    "App": "app",
    "AvroOptions": "model.dataset",
    "Batch": "sinks.function",
    "Console": "connectors.console",
    "CsvOptions": "model.dataset",
    "Custom": "connectors.custom",
    "Delta": "connectors.delta",
    "DeltaPath": "connectors.deltapath",
    "Email": "alert.mail",
    "FileSink": "sinks.files",
    "Files": "connectors.files",
    "Generator": "connectors.generator",
    "Http": "connectors.http",
    "Inbox": "connectors.inbox",
    "Kafka": "connectors.kafka",
    "Log": "alert.log",
    "Memory": "connectors.memory",
    "Postgres": "sinks.postgres",
    "Rate": "connectors.rate",
    "Receiver": "connectors.receiver",
    "Redis": "sinks.redis",
    "SQLite": "sinks.sqlite",
    "Socket": "connectors.socket",
    "Table": "connectors.table",
    "Timer": "operators",
    "Webhook": "alert.webhook",
    "absent": "operators",
    "dedup": "operators",
    "join_as_of": "operators",
    "join_within": "operators",
    "match": "operators",
    "partition_sink": "sinks.function",
    "pattern": "operators",
    "reference": "operators",
    "salted": "operators",
    "sink": "sinks.function",
    "stateful": "operators",
    "top_k": "operators",
}
"""Where each public name is; it is imported when first used, so that commands start at once."""

__all__ = ["__version__", *_ROOMS]  # noqa: PLE0604 - all of them are text


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _ROOMS:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        value = globals()[name] = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return __all__
