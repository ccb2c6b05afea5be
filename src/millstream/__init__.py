"""Continuous applications on Apache Spark."""

from millstream.app import App
from millstream.connectors.files import Files
from millstream.connectors.generator import Generator
from millstream.connectors.kafka import Kafka
from millstream.connectors.memory import Memory
from millstream.connectors.rate import Rate
from millstream.model.dataset import CsvOptions
from millstream.operators import dedup
from millstream.settings import __version__

__all__ = [
    "App",
    "CsvOptions",
    "Files",
    "Generator",
    "Kafka",
    "Memory",
    "Rate",
    "__version__",
    "dedup",
]
