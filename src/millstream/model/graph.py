"""The application as a graph: datasets and what they read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from millstream.errors import UnknownSelectionError
from millstream.model.dataset import Dataset, Source, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SELECTOR = re.compile(r"(\+?)([A-Za-z_]\w*)(\+?)")


@dataclass(frozen=True, slots=True)
class Graph:
    """All datasets of one application, in the order of declaration."""

    app: str
    declared: tuple[Dataset, ...]

    @property
    def datasets(self) -> Mapping[str, Dataset]:
        """Datasets by name; of two with one name, the first."""
        datasets: dict[str, Dataset] = {}
        for dataset in self.declared:
            datasets.setdefault(dataset.name, dataset)
        return datasets

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, in the order of declaration."""
        return tuple(d for d in self.declared if isinstance(d, Source))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables, in the order of declaration."""
        return tuple(d for d in self.declared if isinstance(d, Table))

    @property
    def views(self) -> tuple[View, ...]:
        """The views, in the order of declaration."""
        return tuple(d for d in self.declared if isinstance(d, View))

    @property
    def cycle(self) -> tuple[str, ...]:
        """Names that read each other in a circle, first and last the same; empty if none do."""
        try:
            self._sorter().prepare()
        except CycleError as error:
            circle = list(reversed(error.args[1]))[1:]
            first = min(range(len(circle)), key=lambda n: list(self.datasets).index(circle[n]))
            return (*circle[first:], *circle[:first], circle[first])
        return ()

    @property
    def ordered(self) -> tuple[Dataset, ...]:
        """The datasets, each after all that it reads."""
        datasets = self.datasets
        return tuple(datasets[name] for name in self._sorter().static_order())

    def upstream(self, name: str) -> frozenset[str]:
        """Everything `name` is made from, directly or not."""
        found: set[str] = set()
        todo = list(self.datasets[name].reads)
        while todo:
            reads = todo.pop()
            if reads not in found:
                found.add(reads)
                todo.extend(self.datasets[reads].reads)
        return frozenset(found)

    def downstream(self, name: str) -> frozenset[str]:
        """Everything made from `name`, directly or not."""
        return frozenset(other for other in self.datasets if name in self.upstream(other))

    def select(self, selectors: Iterable[str]) -> frozenset[str]:
        """Names chosen by dbt's syntax: `name`, `+name` with what it reads, `name+` with readers.

        Raises:
            UnknownSelectionError: A selector names nothing of this application.
        """
        chosen: set[str] = set()
        for selector in selectors:
            match = _SELECTOR.fullmatch(selector)
            if match is None or match[2] not in self.datasets:
                raise UnknownSelectionError(selector, declared=tuple(self.datasets))
            before, name, after = match.groups()
            chosen.add(name)
            chosen |= self.upstream(name) if before else frozenset()
            chosen |= self.downstream(name) if after else frozenset()
        return frozenset(chosen)

    def _sorter(self) -> TopologicalSorter[str]:
        datasets = self.datasets
        return TopologicalSorter(
            {d.name: [r for r in d.reads if r in datasets] for d in datasets.values()}
        )
