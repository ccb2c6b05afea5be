from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.systems.console.sink import Echo

if TYPE_CHECKING:
    from pathlib import Path

PRINTED = """\
-------------------------------------------
Batch: 3
-------------------------------------------
+----+
|item|
+----+
|tea |
+----+
only showing top 1 row
"""


def test_what_spark_prints_is_separated_from_what_it_logs_in_whole_lines(
    tmp_path: Path,
) -> None:
    log = tmp_path / "spark.log"
    log.write_text("|before|\n")

    with log.open("rb") as opened, log.open("a") as file:
        echo = Echo(opened)
        print("08:00:00 WARN TaskSetManager: + |\n" + PRINTED + "\n|half", file=file, end="")
        file.flush()
        assert list(echo.new()) == PRINTED.splitlines()
        log.rename(tmp_path / "spark.log.1")
        print(" a row|", file=file, flush=True)
        assert list(echo.new()) == ["|half a row|"]
        assert list(echo.new()) == []
