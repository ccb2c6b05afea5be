"""The windows of time that an answer is grouped by, as the text of its function or query says."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.declare.sql_function import SqlFunction
from millstream.model.dataset import Source, View
from millstream.model.duration import UNIX_EPOCH, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from millstream.model.dataset import Dataset
    from millstream.model.graph import Graph

_TEXT = r"""["']([^"']+)["']"""
_WINDOW = re.compile(rf"\bwindow\(\s*[^,()]+,\s*{_TEXT}(?:\s*,\s*{_TEXT})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of one length, which begin at each multiple of a slide."""

    length: timedelta
    slide: timedelta

    def first_end_after(self, moment: datetime) -> datetime:
        """Return when the first window ends that is not over at a moment.

        >>> from datetime import UTC, datetime, timedelta
        >>> minute = timedelta(minutes=1)
        >>> moment = datetime(2026, 1, 1, 12, 0, 20, tzinfo=UTC)
        >>> Window(5 * minute, minute).first_end_after(moment).time()
        datetime.time(12, 1)
        """
        # The ends are where the beginnings are, moved by the length.
        shift = self.length % self.slide
        return moment + self.slide - (moment - UNIX_EPOCH - shift) % self.slide


def windows_of(graph: Graph, name: str) -> tuple[Window, ...]:
    """Find the windows of a dataset and of the views it reads, as far as they are written plainly.

    A length that is computed, or kept under a name, is not found.
    """
    found: dict[Window, None] = {}
    for dataset in _inlined(graph, graph.datasets[name]):
        for length, slide in _WINDOW.findall(_written(dataset)):
            try:
                window = Window(parse_duration(length), parse_duration(slide or length))
            except ValueError:
                continue
            if window.slide:
                found[window] = None
    return tuple(found)


def _inlined(graph: Graph, dataset: Dataset) -> Iterator[Dataset]:
    yield dataset
    for name in dataset.reads:
        if isinstance(view := graph.datasets[name], View):
            yield from _inlined(graph, view)


def _written(dataset: Dataset) -> str:
    if isinstance(dataset, Source):
        return ""
    if isinstance(dataset.build, SqlFunction):
        return dataset.build.query
    try:
        return inspect.getsource(inspect.unwrap(dataset.build))
    except (OSError, TypeError):
        return ""
