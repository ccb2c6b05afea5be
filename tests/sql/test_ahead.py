"""A query is translated beside or here: the same question, the same errors, nobody left behind.

Each test has an interpreter of its own, for a process beside is begun before there are threads.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millstream.lake.home import Home

if TYPE_CHECKING:
    from pathlib import Path

BOTH = """
import json, sys
from dataclasses import asdict
from millstream.sql.ahead import Translator

translator = Translator()
from millstream.lake.home import Home
from millstream.sql.translation import translate

home, text = Home.at(sys.argv[1]), sys.argv[2]
beside, here = translator.translate(home, text), translate(home, text)
print(json.dumps([beside and asdict(beside), asdict(here)]))
"""

KILLED = """
import os, signal, sys
from millstream.sql.ahead import Translator

translator = Translator()
from millstream.lake.home import Home

os.kill(translator.pid, signal.SIGKILL)
os.waitid(os.P_PID, translator.pid, os.WEXITED | os.WNOWAIT)
print(translator.translate(Home.at(sys.argv[1]), "SELECT 1"))
"""

UNASKED = """
import os
from millstream.sql.ahead import Translator

translator = Translator()
os.close(translator._ask)
print(os.waitpid(translator.pid, 0)[1])
"""


@pytest.fixture
def orders(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "shop")
    home.prepare("shop", sources=[])
    rows = pa.table({"item": ["ink", "pen"], "price": [2.5, 4.0]})
    write_deltalake(str(home.table("orders")), rows)
    return home


def told(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


def test_a_process_beside_makes_the_same_question(orders: Home) -> None:
    text = "SELECT item, `price` * 2 AS twice FROM orders WHERE item != 'é\n'"

    beside, here = json.loads(told("-c", BOTH, str(orders.path), text).stdout)

    assert beside == here
    assert beside["columns"] == ["item", "twice"]


def test_what_cannot_be_translated_beside_is_refused_as_ever(orders: Home) -> None:
    end = told(
        "-m", "millstream.cli", "query", "SELECT itm FROM orders", "--home", str(orders.path)
    )

    assert end.stderr.splitlines()[:3] == [
        "[UNKNOWN_COLUMN] no column 'itm' here",
        "  at:  query:1:8",
        "  fix: did you mean 'item'? columns are item, price",
    ]


def test_a_process_that_nobody_asks_ends_by_itself() -> None:
    assert told("-c", UNASKED).stdout == "0\n"


def test_a_process_that_was_killed_has_no_translation(orders: Home) -> None:
    assert told("-c", KILLED, str(orders.path)).stdout == "None\n"
