"""Continuous applications on Apache Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from millstream.settings import __version__ as __version__

if TYPE_CHECKING:
    from millstream import learn as learn
    from millstream.app import App as App
    from millstream.landing.inbox import Inbox as Inbox
    from millstream.learn.score import score as score
    from millstream.model.codec import AvroOptions as AvroOptions, CsvOptions as CsvOptions
    from millstream.operators import (
        Timer as Timer,
        absent as absent,
        add_columns as add_columns,
        dedup as dedup,
        join_as_of as join_as_of,
        join_within as join_within,
        match as match,
        pattern as pattern,
        reference as reference,
        salted as salted,
        sampling as sampling,
        sketch as sketch,
        stateful as stateful,
        top_k as top_k,
    )
    from millstream.systems.console.settings import Console as Console
    from millstream.systems.custom.receiver import Receiver as Receiver
    from millstream.systems.custom.settings import (
        Batch as Batch,
        partition_sink as partition_sink,
        sink as sink,
    )
    from millstream.systems.custom.source import Custom as Custom
    from millstream.systems.delta.settings import DeltaPath as DeltaPath
    from millstream.systems.delta.source import Delta as Delta
    from millstream.systems.files.settings import FileSink as FileSink
    from millstream.systems.files.source import Files as Files
    from millstream.systems.generator.source import Generator as Generator
    from millstream.systems.http.source import Http as Http, HttpLimits as HttpLimits
    from millstream.systems.kafka.settings import Kafka as Kafka
    from millstream.systems.log.settings import Log as Log
    from millstream.systems.mail.settings import Email as Email
    from millstream.systems.memory.source import Memory as Memory
    from millstream.systems.postgres.settings import Postgres as Postgres
    from millstream.systems.rate.source import Rate as Rate
    from millstream.systems.redis.settings import Redis as Redis
    from millstream.systems.socket.source import Socket as Socket
    from millstream.systems.sqlite.settings import SQLite as SQLite
    from millstream.systems.table.source import Table as Table
    from millstream.systems.webhook.settings import Webhook as Webhook

_ROOMS = {
    "App": "app",
    "AvroOptions": "model.codec",
    "Batch": "systems.custom.settings",
    "Console": "systems.console.settings",
    "CsvOptions": "model.codec",
    "Custom": "systems.custom.source",
    "Delta": "systems.delta.source",
    "DeltaPath": "systems.delta.settings",
    "Email": "systems.mail.settings",
    "FileSink": "systems.files.settings",
    "Files": "systems.files.source",
    "Generator": "systems.generator.source",
    "Http": "systems.http.source",
    "HttpLimits": "systems.http.source",
    "Inbox": "landing.inbox",
    "Kafka": "systems.kafka.settings",
    "Log": "systems.log.settings",
    "Memory": "systems.memory.source",
    "Postgres": "systems.postgres.settings",
    "Rate": "systems.rate.source",
    "Receiver": "systems.custom.receiver",
    "Redis": "systems.redis.settings",
    "SQLite": "systems.sqlite.settings",
    "Socket": "systems.socket.source",
    "Table": "systems.table.source",
    "Timer": "operators",
    "Webhook": "systems.webhook.settings",
    "absent": "operators",
    "add_columns": "operators",
    "dedup": "operators",
    "join_as_of": "operators",
    "join_within": "operators",
    "learn": "learn",
    "match": "operators",
    "partition_sink": "systems.custom.settings",
    "pattern": "operators",
    "reference": "operators",
    "salted": "operators",
    "sampling": "operators",
    "score": "learn.score",
    "sink": "systems.custom.settings",
    "sketch": "operators",
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
        room = import_module(f"{__name__}.{_ROOMS[name]}")
        value = globals()[name] = room if name == _ROOMS[name] else getattr(room, name)
        return value

    def __dir__() -> list[str]:
        return __all__
