from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.cli.quiet import log_folder, write_logs_to
from millstream.cli.trace import write_trace

if TYPE_CHECKING:
    import pytest


def test_what_py4j_logs_is_in_a_file_and_nowhere_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_logs_to(tmp_path / "logs")

    logging.getLogger("py4j.clientserver").error("no connection")
    record = logging.LogRecord(
        "root", logging.ERROR, "/x/py4j/java_gateway.py", 1, "gone", (), None
    )
    logging.getLogger().handle(record)
    logging.getLogger("shop").error("sold out")

    assert log_folder() == tmp_path / "logs"
    reported = (tmp_path / "logs" / "python.log").read_text()
    assert "no connection" in reported
    assert "gone" in reported
    assert caplog.messages == ["sold out"]


def test_logs_and_traces_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_logs_to(tmp_path / "home" / "logs")
        logging.getLogger("py4j").error("no connection")
        trace = Path(write_trace(ValueError("no")))
    finally:
        os.umask(before)

    home = tmp_path / "home"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (home, home / "logs/python.log", trace)]
    assert modes == [0o700, 0o600, 0o600]


def test_a_full_disk_prints_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "full" / "logs"
    logs.parent.write_text("no folder can be made here")
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    write_logs_to(logs)

    logging.getLogger("py4j").error("no connection")
    trace = Path(write_trace(ValueError("no")))

    assert capsys.readouterr() == ("", "")
    assert trace.parent == tmp_path / "cache" / "logs"
    assert "ValueError: no" in trace.read_text()


def test_a_later_run_of_the_process_closes_the_log_of_the_earlier_one(tmp_path: Path) -> None:
    write_logs_to(tmp_path / "first")
    logging.getLogger("py4j").error("no connection")
    [earlier] = logging.getLogger("py4j").handlers
    assert isinstance(earlier, logging.FileHandler)
    assert earlier.stream is not None

    write_logs_to(tmp_path / "second")

    assert earlier.stream is None
