"""A terminal without Spark's noise: what its Python side has to say goes to a file."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.cli.text import report_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import TextIOWrapper

    from pyspark.sql import SparkSession

_NOISY = ("py4j", "pyspark", "py.warnings")


def write_logs_to(folder: Path) -> None:
    """Send what pyspark and py4j would print, and Python's warnings, to `python.log`."""
    file = _LogFile(folder / "python.log", delay=True)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in _NOISY:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [file], False
    logging.getLogger().addFilter(_Diversion(file))
    logging.captureWarnings(capture=True)
    _log_accumulators()


def _log_accumulators() -> None:
    """Have pyspark's accumulator server log, rather than print, that its JVM has gone."""
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

    def log(*given: object) -> None:  # noqa: ARG001
        logging.getLogger("pyspark").exception("the accumulator server lost its JVM")

    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = log  # type: ignore[assignment, method-assign]


class _Diversion(logging.Filter):
    """Keeps from the root logger what py4j, unlike its other messages, logs there."""

    def __init__(self, file: logging.Handler) -> None:
        super().__init__()
        self._file = file

    def filter(self, record: logging.LogRecord) -> bool:
        """Let others through."""
        if "py4j" not in Path(record.pathname).parts:
            return True
        self._file.handle(record)
        return False


class _LogFile(logging.FileHandler):
    """A file that is made, with its folder, when there is something to write."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()


def open_quiet_session(
    app: str, master: str, *, conf: Mapping[str, str], log_dir: Path | None = None
) -> SparkSession:
    """Start Spark with all its logs in files; whoever waits at a terminal is told."""
    from millstream.spark.session import open_session

    folder = log_dir or log_folder()
    write_logs_to(folder)
    return open_session(app, master=master, conf=conf, log_dir=folder, report=_tell_who_waits)


def _tell_who_waits(subject: str, fact: str) -> None:
    if sys.stderr.isatty():
        print(report_line(subject, fact), file=sys.stderr)


def log_folder() -> Path:
    """Where logs and traces go."""
    from millstream.spark.cache import cache_dir

    for handler in logging.getLogger(_NOISY[0]).handlers:
        if isinstance(handler, logging.FileHandler):
            return Path(handler.baseFilename).parent
    return cache_dir() / "logs"
