"""The system of docs/how-to/add-a-system.md: put into a folder, and run."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.apps import run
from tests.systems.stores import opened, put, table

from millstream import systems
from millstream.bind import kind
from millstream.errors import OvertakenError
from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "add-a-system.md"
MODULE = re.compile(r"^`(systems/spool/\w+\.py)`:\n\n```python\n(.*?)^```$", re.M | re.S)
APP = """
import millstream as ms
from millstream.systems.spool.settings import Page
from millstream.systems.spool.source import Spool

app = ms.App("shop")

@app.source
def orders():
    return Spool("spool", schema="id INT, item STRING")

@app.serve(to=Page("page.json", key=("item",)), mode="update")
def sold(orders):
    return orders.groupBy("item").count()
"""

IN_CODE = """
import millstream as ms

app = ms.App("shop")

@app.source
def orders():
    return ms.Memory("id INT, item STRING")

@app.serve(to=ms.SQLite("sold.db", key="item"), mode="update")
def sold(orders):
    return orders.groupBy("item").count()
"""
PROFILE = """
[profile.default.sources.orders]
kind = "spool"
folder = "spool"

[profile.default.serve.sold]
kind = "page"
path = "page.json"
key = ["item"]
"""


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package `millstream.systems.spool`, made of the page."""
    found = dict(MODULE.findall(PAGE.read_text()))
    for name, text in {**found, "systems/spool/__init__.py": ""}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(systems, "__path__", [*systems.__path__, str(tmp_path / "systems")])
    monkeypatch.chdir(tmp_path)
    caches = (kind.kinds, kind.store_kinds, kind.destination_kinds, kind.written_kinds)
    for cached in caches:
        cached.cache_clear()
    yield __import__("millstream.systems.spool.settings", fromlist=["Page"])
    for cached in caches:
        cached.cache_clear()
    for name in [name for name in sys.modules if name.startswith("millstream.systems.spool")]:
        del sys.modules[name]


@pytest.mark.spark
@pytest.mark.parametrize(("text", "profile"), [(APP, ""), (IN_CODE, PROFILE)], ids=["code", "toml"])
def test_an_app_reads_and_writes_the_new_system(
    text: str, profile: str, spool: Any, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(text)
    (tmp_path / "millstream.toml").write_text(profile)
    (tmp_path / "spool").mkdir()
    app = load(str(tmp_path / "app.py"))
    for number, items in enumerate((["tea", "mug", "tea"], ["tea"])):
        lines = (json.dumps({"id": n, "item": item}) for n, item in enumerate(items))
        (tmp_path / "spool" / f"{number}.json").write_text("\n".join(lines))
        run(app, tmp_path / "home")

    page = json.loads((tmp_path / "page.json").read_text())
    assert sorted((row["item"], row["count"]) for row in page["rows"].values()) == [
        ("mug", 1),
        ("tea", 3),
    ]


def test_a_batch_is_written_once_and_never_by_a_driver_that_was_overtaken(
    spool: Any, tmp_path: Path
) -> None:
    sink = spool.Page(str(tmp_path / "page.json"), key=("id",))
    first = opened(sink, epoch=1)
    put(first, 0, table({"id": 1, "text": "one"}))
    put(first, 0, table({"id": 2, "text": "again"}))
    second = opened(sink, epoch=2)
    put(second, 1, table({"id": 3, "text": "three"}))

    with pytest.raises(OvertakenError):
        put(first, 1, table({"id": 4, "text": "late"}))

    page = json.loads((tmp_path / "page.json").read_text())
    assert sorted(row["id"] for row in page["rows"].values()) == [1, 3]
