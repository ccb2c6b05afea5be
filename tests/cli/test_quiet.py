from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from millstream.cli.quiet import log_folder, write_logs_to

if TYPE_CHECKING:
    from pathlib import Path

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
    told = (tmp_path / "logs" / "python.log").read_text()
    assert "no connection" in told
    assert "gone" in told
    assert caplog.messages == ["sold out"]
