"""Continuous applications on Apache Spark."""

from millstream.app import App
from millstream.connectors.custom import Custom
from millstream.connectors.delta import Delta
from millstream.connectors.files import Files
from millstream.connectors.generator import Generator
from millstream.connectors.http import Http
from millstream.connectors.inbox import Inbox
from millstream.connectors.kafka import Kafka
from millstream.connectors.memory import Memory
from millstream.connectors.rate import Rate
from millstream.connectors.receiver import Receiver
from millstream.connectors.socket import Socket
from millstream.model.dataset import CsvOptions
from millstream.operators import dedup
from millstream.settings import __version__

__all__ = [
    "App",
    "CsvOptions",
    "Custom",
    "Delta",
    "Files",
    "Generator",
    "Http",
    "Inbox",
    "Kafka",
    "Memory",
    "Rate",
    "Receiver",
    "Socket",
    "__version__",
    "dedup",
]
