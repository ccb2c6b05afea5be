"""Lines over time as an SVG file: one chart below the other, all over the same time."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

WIDTH, HEIGHT, LEFT, GAP = 860, 150, 90, 50
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf")


@dataclass(frozen=True)
class Chart:
    """Lines that share an axis, which begins at 0."""

    title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    """By name: points of time and value."""
    limit: float | None = None
    """A value that is drawn as a dashed line."""


def write_svg(path: Path, title: str, charts: Sequence[Chart], *, unit: str = "s") -> None:
    """Draw charts."""
    times = [at for chart in charts for line in chart.lines.values() for at, _ in line]
    until = max(times, default=1.0) or 1.0
    parts = [
        _drawn(chart, GAP + number * (HEIGHT + GAP), until) for number, chart in enumerate(charts)
    ]
    height = GAP + len(charts) * (HEIGHT + GAP)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + LEFT + 20}" height="{height}" '
        'font-family="sans-serif" font-size="12">\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>\n'
        + "".join(parts)
        + f'<text x="{LEFT + WIDTH}" y="{height - 30}" text-anchor="end">{until:,.0f} {unit}</text>'
        + "\n</svg>\n"
    )


def _drawn(chart: Chart, top: float, until: float) -> str:
    values = [value for line in chart.lines.values() for _, value in line]
    greatest = max([*values, chart.limit or 0.0]) or 1.0
    bottom = top + HEIGHT

    def place(at: float, value: float) -> str:
        return f"{LEFT + at / until * WIDTH:.1f},{bottom - value / greatest * HEIGHT:.1f}"

    drawn = [
        f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{escape(chart.title)}</text>',
        f'<path d="M{LEFT},{top}V{bottom}H{LEFT + WIDTH}" fill="none" stroke="#888"/>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{greatest:,.4g}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
    ]
    if chart.limit is not None:
        ends = f"{place(0, chart.limit)} {place(until, chart.limit)}"
        drawn.append(f'<polyline points="{ends}" stroke="#888" stroke-dasharray="6 4"/>')
    for number, (name, line) in enumerate(chart.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(place(at, value) for at, value in line)
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        x = LEFT + WIDTH - 8
        y = top + 12 + 14 * number
        drawn.append(f'<text x="{x}" y="{y}" text-anchor="end" fill="{colour}">{name}</text>')
    return "\n".join(drawn) + "\n"
