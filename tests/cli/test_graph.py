from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

SHOP = """\
import millstream as ms
from pyspark.sql import DataFrame, functions as F
app = ms.App("shop")
@app.source(event_time="at", watermark="1 minute")
def orders(): return ms.Memory("id BIGINT, at TIMESTAMP")
@app.source(live=True)
def clicks(): return ms.Rate(5)
@app.view
def recent(orders: DataFrame) -> DataFrame: return orders.where(F.col("id") > 1)
@app.table(mode="update", key=["id"])
def paid(recent: DataFrame, clicks: DataFrame) -> DataFrame: return recent.join(clicks)
app.sql("end", "SELECT id FROM paid", mode="complete")
"""


@pytest.fixture(autouse=True)
def shop(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").write_text(SHOP)


def test_a_graph_is_a_tree_with_each_dataset_once(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("graph")

    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "shop: 2 sources, 1 view, 2 tables",
        "",
        "  orders        source · memory",
        "  └─ recent     view",
        "     └─ paid    table · update by id · reads clicks too",
        "        └─ end  table · complete",
        "  clicks        source · rate · live",
    ]


def test_a_graph_is_valid_mermaid_whatever_its_datasets_are_called(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("graph", "--format", "mermaid")

    lines = outcome.out.splitlines()
    assert lines[0] == "flowchart LR"
    assert '  n4[("end<br/>table · complete")]' in lines
    assert "  n3 --> n4" in lines
    assert not any(line.strip().startswith("end") for line in lines)


def test_a_graph_is_drawn_as_svg(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("graph", "--format", "svg")

    picture = ElementTree.fromstring(outcome.out)
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"orders", "source · memory", "table · update by id"} <= set(texts)
    assert "prefers-color-scheme:dark" in outcome.out


@pytest.mark.parametrize("words", [["--json"], ["--format", "json"]])
def test_a_graph_has_a_shape_in_json(words: list[str], millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("graph", *words)

    found = json.loads(outcome.out)
    assert found["app"]["name"] == "shop"
    [paid] = [node for node in found["datasets"] if node["name"] == "paid"]
    assert (paid["reads"], paid["read_by"], paid["mode"]) == (
        ["recent", "clicks"],
        ["end"],
        "update",
    )
    assert (paid["file"], paid["line"]) == ("app.py", 10)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--select", "1+paid"], {"recent", "clicks", "paid"}),
        (["--select", "orders+1 end"], {"orders", "recent", "end"}),
        (["--select", "orders", "--select", "clicks"], {"orders", "clicks"}),
        (["--exclude", "paid+"], {"orders", "clicks", "recent"}),
        (["--select", "+paid", "--exclude", "clicks"], {"orders", "recent", "paid"}),
    ],
)
def test_a_part_of_a_graph_is_shown(
    words: list[str], names: set[str], millstream: Callable[..., Outcome]
) -> None:
    outcome = millstream("graph", "--json", *words)

    assert {node["name"] for node in json.loads(outcome.out)["datasets"]} == names


def test_excluding_what_is_not_there_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("graph", "--exclude", "2+payd")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[UNKNOWN_SELECTION] --exclude '2+payd' names no dataset",
        "  fix: did you mean 'paid'? write name, +name, name+ or 2+name; "
        "names are clicks, end, orders, paid, recent",
    ]


def test_an_unknown_format_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("graph", "--format", "mermade")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[ARGUMENT_REFUSED] --format cannot be 'mermade'",
        "  fix: give text, mermaid, svg or json; did you mean 'mermaid'?",
    ]


def test_an_app_with_faults_is_refused(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").write_text(SHOP + 'app.sql("lost", "SELECT id FROM payd")\n')

    outcome = millstream("graph")

    assert outcome.code == 1
    assert outcome.err.startswith("[UNKNOWN_INPUT] 'lost' reads 'payd', which is not declared")


def test_no_app_file_is_refused(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").unlink()

    outcome = millstream("graph")

    assert outcome.code == 2
    assert outcome.err.startswith("[APP_FILE_MISSING] app file 'app.py' does not exist")
