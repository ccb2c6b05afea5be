"""A terminal without Spark's logs: its Python side logs to a file."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.cli.text import report_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import TextIOWrapper

    from pyspark.sql import SparkSession

_LONGEST, _KEPT = 20_000_000, 3
"""As Spark's own log: bytes of a file, and how many older ones are kept."""
_NOISY = ("py4j", "pyspark", "py.warnings")


def write_logs_to(folder: Path) -> None:
    """Send what pyspark and py4j would print, and Python's warnings, to `python.log`."""
    file = _LogFile(folder / "python.log", maxBytes=_LONGEST, backupCount=_KEPT, delay=True)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in _NOISY:
        logger = logging.getLogger(name)
        for earlier_file in logger.handlers:
            earlier_file.close()  # of a run before this one in the same process
        logger.handlers, logger.propagate = [file], False
    root = logging.getLogger()
    for earlier in [each for each in root.filters if isinstance(each, _Diversion)]:
        root.removeFilter(earlier)
    root.addFilter(_Diversion(file))
    logging.captureWarnings(capture=True)
    _log_accumulators()


def _log_accumulators() -> None:
    """Make pyspark's accumulator server log, rather than print, that its JVM has gone."""
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

    def log(*arguments: object) -> None:  # noqa: ARG001
        logging.getLogger("pyspark").exception("the accumulator server lost its JVM")

    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = log  # type: ignore[assignment, method-assign]


class _Diversion(logging.Filter):
    """Keeps from the root logger what py4j, unlike its other messages, logs there."""

    def __init__(self, file: logging.Handler) -> None:
        super().__init__()
        self._file = file

    def filter(self, record: logging.LogRecord) -> bool:
        """Pass on records of other packages."""
        if "py4j" not in Path(record.pathname).parts:
            return True
        self._file.handle(record)
        return False


class _LogFile(RotatingFileHandler):
    """A file that is made, with its folder, when there is something to write."""

    def _open(self) -> TextIOWrapper:
        from millstream.spark.cache import for_owner

        folder = Path(self.baseFilename).parent
        # The first message may come before the home is made.
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        return open(self.baseFilename, "a", encoding="utf-8", opener=for_owner)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, if that is possible: a full disk has an error of its own."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Print nothing."""


def open_quiet_session(
    app: str, master: str, *, conf: Mapping[str, str], log_dir: Path | None = None
) -> SparkSession:
    """Start Spark with all its logs in files; at a terminal, print the progress."""
    from millstream.spark.session import open_session

    folder = log_dir or log_folder()
    write_logs_to(folder)
    return open_session(app, master=master, conf=conf, log_dir=folder, report=_print_progress)


def _print_progress(subject: str, fact: str) -> None:
    if sys.stderr.isatty():
        print(report_line(subject, fact), file=sys.stderr)


def log_folder() -> Path:
    """Where logs and traces go."""
    from millstream.spark.cache import cache_dir

    for handler in logging.getLogger(_NOISY[0]).handlers:
        if isinstance(handler, logging.FileHandler):
            return Path(handler.baseFilename).parent
    return cache_dir() / "logs"
