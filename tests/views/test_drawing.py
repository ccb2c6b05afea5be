from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from hypothesis import given, settings, strategies as st
from tests.graphs import graph, source, table, view

import millstream as ms
from millstream.views.drawing import to_html, to_mermaid, to_svg, to_text
from millstream.views.graph import GraphView

if TYPE_CHECKING:
    from millstream.model.dataset import Dataset

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def graphs(draw: st.DrawFn) -> GraphView:
    """Graphs of up to thirty tables that read any before them."""
    datasets: list[Dataset] = [source("s0"), source("s1")]
    for number in range(draw(st.integers(0, 30))):
        known = [dataset.name for dataset in datasets]
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
        datasets.append(table(f"t{number}", *reads))
    return GraphView.of(graph(*datasets))


@settings(deadline=None)
@given(graphs())
def test_every_dataset_is_drawn_once_right_of_what_it_reads_and_on_nothing_else(
    shown: GraphView,
) -> None:
    picture = ElementTree.fromstring(to_svg(shown))

    boxes = {}
    for group in picture.iter(f"{SVG}g"):
        box, name = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert box is not None
        assert name is not None
        x, y, width, height = (float(box.attrib[k]) for k in ("x", "y", "width", "height"))
        boxes[name.text] = (x, y, x + width, y + height)
    assert len(boxes) == len(shown.datasets)
    for read, reader in shown.edges:
        assert boxes[read][2] < boxes[reader][0]
    for one, other in pairwise(sorted(boxes.values())):
        assert one[2] < other[0] or one[3] < other[1]
    assert max(box[2] for box in boxes.values()) <= float(picture.attrib["width"])
    assert max(box[3] for box in boxes.values()) <= float(picture.attrib["height"])


@settings(deadline=None)
@given(graphs())
def test_a_tree_names_every_dataset_once(shown: GraphView) -> None:
    lines = to_text(shown).splitlines()[2:]

    names = [re.sub(r"^[ │├└─]+", "", line).split()[0] for line in lines]
    assert sorted(names) == sorted(node.name for node in shown.datasets)


@settings(deadline=None)
@given(graphs())
def test_mermaid_has_a_line_for_every_dataset_and_every_edge(shown: GraphView) -> None:
    lines = to_mermaid(shown).splitlines()

    assert len(lines) == 1 + len(shown.datasets) + len(list(shown.edges))
    node = r'  n\d+(\(\[|\[\(|\[)"[^"<>]+<br/>[^"<>]+"(\]\)|\)\]|\])'
    assert all(re.fullmatch(rf"{node}|  n\d+ --> n\d+", line) for line in lines[1:])


def test_words_that_mean_something_to_the_page_are_escaped() -> None:
    shown = GraphView.of(graph(source("s"), table("t", "s", mode="update", key=('<b>"&',))))

    for drawn in (to_svg(shown), to_html(shown)):
        assert "&lt;b&gt;&quot;&amp;" in drawn
        assert "<b>" not in drawn
    assert "#60;b#62;#34;#38;" in to_mermaid(shown)


def test_an_app_without_datasets_is_drawn_too() -> None:
    empty = GraphView.of(graph())

    assert to_text(empty) == "shop: nothing declared"
    assert to_mermaid(empty) == "flowchart LR"
    assert ElementTree.fromstring(to_svg(empty)) is not None


def test_an_app_draws_itself_in_a_notebook_with_what_is_wrong_so_far() -> None:
    app = ms.App("shop")

    @app.source()
    def orders() -> ms.Memory:
        return ms.Memory("id BIGINT")

    app.sql("paid", "SELECT id FROM orders JOIN customers")

    drawn = app._repr_html_()

    assert drawn.startswith("<div>shop: 1 source, 1 table</div><svg ")
    assert "prefers-color-scheme" not in drawn
    assert "<pre>[UNKNOWN_INPUT] &#x27;paid&#x27; reads &#x27;customers&#x27;" in drawn


def test_datasets_that_read_in_a_circle_are_drawn_all_the_same() -> None:
    round_trip = GraphView.of(graph(source("s"), view("a", "b"), view("b", "a")))

    assert len(list(ElementTree.fromstring(to_svg(round_trip)).iter(f"{SVG}rect"))) == 3
