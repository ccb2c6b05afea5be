"""A graph drawn: as a tree of text, as Mermaid, as SVG in layers from left to right.

Notebooks show the SVG: Mermaid needs JavaScript from a server, and an exported notebook has none.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.views.graph import GraphView, NodeView

_SHAPES = {"source": ("([", "])"), "view": ("[", "]"), "table": ("[(", ")]"),
           "model": ("{{", "}}"), "stream": ("[[", "]]"), "alert": (">", "]"),
           "serve": ("[/", "/]")}  # fmt: skip
_COLOURS = {"source": "#2f81f7", "view": "#8b949e", "table": "#2ea043",
            "model": "#1b7c83", "stream": "#bf8700", "alert": "#db6d28",
            "serve": "#a371f7"}  # fmt: skip
_LETTER, _PADDING, _HEIGHT, _ROW_GAP, _LAYER_GAP, _LANE = 7.3, 12, 44, 16, 56, 10
_SWEEPS = 8
_COLOUR_OF_TEXT = (
    "<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"
)


def to_text(view: GraphView) -> str:
    """Draw a tree: below each dataset those that read it, each dataset once."""
    nodes = {node.name: node for node in view.datasets}
    below: dict[str | None, list[NodeView]] = {None: []}
    for node in view.datasets:
        below.setdefault(_parent(node, nodes), []).append(node)
    lines: list[tuple[str, str]] = []
    todo = [(node, "", "") for node in reversed(below[None])]
    while todo:
        node, before, branch = todo.pop()
        others = [read for read in dict.fromkeys(node.reads) if read != _parent(node, nodes)]
        also = f" · reads {', '.join(others)}{' too' if branch else ''}" if others else ""
        lines.append((before + branch + node.name, f"{node}{also}"))
        inside = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        children = below.get(node.name, [])
        todo += [
            (child, inside, "└─ " if child is children[-1] else "├─ ")
            for child in reversed(children)
        ]
    width = max((len(label) for label, _ in lines), default=0)
    drawn = "".join(f"\n  {label.ljust(width)}  {caption}" for label, caption in lines)
    return f"{view.app}\n{drawn}" if lines else str(view.app)


def to_mermaid(view: GraphView) -> str:
    """Write a Mermaid flowchart; nodes are numbered, for some names are words of Mermaid."""
    numbers = {node.name: f"n{number}" for number, node in enumerate(view.datasets)}
    lines = ["flowchart LR"]
    for node in view.datasets:
        opening, closing = _SHAPES[node.kind]
        label = f"{_entities(node.name)}<br/>{_entities(str(node))}"
        lines.append(f'  {numbers[node.name]}{opening}"{label}"{closing}')
    lines += [f"  {numbers[read]} --> {numbers[reader]}" for read, reader in view.edges]
    return "\n".join(lines)


def to_svg(view: GraphView) -> str:
    """Draw a picture for a file of its own, on light and on dark paper."""
    return _svg(view, _COLOUR_OF_TEXT)


def to_html(view: GraphView) -> str:
    """Draw a picture inside a page, in the colour of the page's text."""
    return f"<div>{html.escape(str(view.app))}</div>{_svg(view)}"


def _parent(node: NodeView, nodes: Mapping[str, NodeView]) -> str | None:
    return next((read for read in node.reads if read in nodes), None)


def _entities(text: str) -> str:
    return "".join(c if c.isalnum() or c in " _-.,·" else f"#{ord(c)};" for c in text)


@dataclass(slots=True)
class _Box:
    """A dataset, or the lane of an edge that passes by a layer."""

    node: NodeView | None
    layer: int
    before: list[_Box] = field(default_factory=list)
    after: list[_Box] = field(default_factory=list)
    place: float = 0
    """In its layer: at first its rank, in the end its middle."""
    left: float = 0
    right: float = 0

    @property
    def width(self) -> float:
        if self.node is None:
            return 0
        return _LETTER * max(len(self.node.name), len(str(self.node))) + 2 * _PADDING

    @property
    def height(self) -> float:
        return _LANE if self.node is None else _HEIGHT


def _svg(view: GraphView, style: str = "") -> str:
    layers = _layers(view)
    _untangle(layers)
    width, height = _place(layers)
    boxes = [box for layer in layers for box in layer]
    parts = [_drawn_edge(box, after) for box in boxes for after in box.after]
    parts += [_drawn_node(box, box.node) for box in boxes if box.node is not None]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" style="max-width:100%;height:auto"'
        ' font-family="ui-monospace,Menlo,Consolas,monospace" font-size="12">'
        f"<title>{html.escape(str(view.app))}</title>{style}{''.join(parts)}</svg>"
    )


def _layers(view: GraphView) -> list[list[_Box]]:
    """Put each dataset right of all it reads; long edges get a lane in every layer between."""
    depth: dict[str, int] = {}
    for node in view.datasets:
        depth[node.name] = 1 + max((depth.get(read, -1) for read in node.reads), default=-1)
    boxes = {node.name: _Box(node, depth[node.name]) for node in view.datasets}
    layers: list[list[_Box]] = [[] for _ in range(1 + max(depth.values(), default=0))]
    for box in boxes.values():
        layers[box.layer].append(box)
    lanes: dict[tuple[str, int], _Box] = {}
    for read, reader in view.edges:
        last = boxes[read]
        for layer in range(depth[read] + 1, depth[reader]):
            lane = lanes.get((read, layer))
            if lane is None:
                lane = lanes[read, layer] = _Box(None, layer)
                layers[layer].append(lane)
                _join(last, lane)
            last = lane
        if depth[read] < depth[reader]:
            _join(last, boxes[reader])
    return layers


def _join(box: _Box, after: _Box) -> None:
    box.after.append(after)
    after.before.append(box)


def _untangle(layers: Sequence[list[_Box]]) -> None:
    """Order each layer by the middle of its neighbours, back and forth: fewer lines cross."""
    for layer in layers:
        _rank(layer)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for layer in layers if forward else reversed(layers):
            middles = {
                id(box): _middle(box.before if forward else box.after, box.place) for box in layer
            }
            layer.sort(key=lambda box: middles[id(box)])
            _rank(layer)


def _rank(layer: Sequence[_Box]) -> None:
    for rank, box in enumerate(layer):
        box.place = rank


def _middle(neighbours: Sequence[_Box], otherwise: float) -> float:
    places = [box.place for box in neighbours]
    return sum(places) / len(places) if places else otherwise


def _place(layers: Sequence[Sequence[_Box]]) -> tuple[float, float]:
    """Give every box its place, and the picture its width and height."""
    heights = [sum(box.height + _ROW_GAP for box in layer) for layer in layers]
    tallest, x = max(heights, default=0), float(_ROW_GAP)
    for layer, height in zip(layers, heights, strict=True):
        y, width = (tallest - height + _ROW_GAP) / 2, max((b.width for b in layer), default=0)
        for box in layer:
            box.left, box.right, box.place = x, x + width, y + box.height / 2
            y += box.height + _ROW_GAP
        x += width + _LAYER_GAP
    return round(x - _LAYER_GAP + _ROW_GAP), round(tallest)


def _drawn_edge(box: _Box, after: _Box) -> str:
    half = (box.right + after.left) / 2
    path = (
        f"M{box.right:g} {box.place:g}C{half:g} {box.place:g} {half:g} {after.place:g} "
        f"{after.left:g} {after.place:g}"
    )
    if after.node is None:
        path += f"H{after.right:g}"
    else:
        path += "m-6 -4l6 4l-6 4"
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".55"/>'


def _drawn_node(box: _Box, node: NodeView) -> str:
    top, colour = box.place - _HEIGHT / 2, _COLOURS[node.kind]
    dashes = ' stroke-dasharray="4 3"' if node.kind == "view" else ""
    text = f'<text x="{box.left + _PADDING:g}" fill="currentColor"'
    return (
        f"<g><title>{html.escape(f'{node.name}: {node}, {node.at}')}</title>"
        f'<rect x="{box.left:g}" y="{top:g}" width="{box.right - box.left:g}" height="{_HEIGHT}"'
        f' rx="6" fill="{colour}" fill-opacity=".14" stroke="{colour}"{dashes}/>'
        f'{text} y="{top + 18:g}" font-weight="bold">{html.escape(node.name)}</text>'
        f'{text} y="{top + 34:g}" fill-opacity=".75">{html.escape(str(node))}</text></g>'
    )
