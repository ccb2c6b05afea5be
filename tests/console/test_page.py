"""The client that docs/how-to/serving.md shows, against a console that really listens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.console.conftest import TOKEN, app_of, served
from tests.systems.stores import opened, put, table

from millstream.systems.sqlite.settings import SQLite

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "serving.md"
SECTION = re.compile(
    r"^## Look rows up over HTTP$.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def test_the_client_of_the_page_looks_a_row_up(tmp_path: Path) -> None:
    sink = SQLite(str(tmp_path / "fleet.db"), table="latest", key="text")
    put(opened(sink), 0, table({"id": 7, "text": "a+b & c"}))
    [code] = SECTION.findall(PAGE.read_text())
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)

    with served(app_of(latest=sink)) as console:
        row = names["look_up"]("latest", TOKEN, console.url.rstrip("/"), text="a+b & c")

    assert row == {"id": 7, "text": "a+b & c"}
