"""The application as a graph: datasets and what they read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed
from millstream.model.batch import DEFAULT_BOUND
from millstream.model.dataset import (
    Alert,
    Dataset,
    FunctionalStream,
    Model,
    Serve,
    Source,
    Table,
    View,
)
from millstream.model.query_options import UNDECLARED, QueryOptions
from millstream.model.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.errors import Location
    from millstream.model.destination import Destination
    from millstream.model.reaction import Reaction
    from millstream.model.sink import Sink

KEEP_VERSIONS = "7 days"
"""How long earlier versions can be read, if nothing else is declared."""

_SELECTOR = re.compile(r"(?:(\d*)(\+))?([A-Za-z_]\w*)(?:(\+)(\d*))?")


@dataclass(frozen=True, slots=True)
class Graph:
    """All datasets of one application, in the order of declaration."""

    app: str
    declared: tuple[Dataset, ...]
    options: QueryOptions = UNDECLARED
    """Of all datasets that say nothing of their own."""
    reactions: tuple[Reaction, ...] = ()
    """Functions that are called when something happens to the app."""
    notify: tuple[Destination, ...] = ()
    """Where it is reported that objectives are not met."""
    at: Location | None = None
    """Where the app is declared."""

    @property
    def datasets(self) -> Mapping[str, Dataset]:
        """Datasets by name; of two with one name, the first."""
        datasets: dict[str, Dataset] = {}
        for dataset in self.declared:
            datasets.setdefault(dataset.name, dataset)
        return datasets

    @property
    def queried(self) -> tuple[Source | Table | Serve, ...]:
        """The datasets with a query of their own, in the order of declaration: all but views."""
        return tuple(d for d in self.declared if not isinstance(d, View))

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, in the order of declaration."""
        return tuple(d for d in self.declared if isinstance(d, Source))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables, in the order of declaration; the outbox of an alert is one."""
        return tuple(d for d in self.declared if isinstance(d, Table))

    @property
    def models(self) -> tuple[Model, ...]:
        """The models, in the order of declaration; each is a table too."""
        return tuple(d for d in self.declared if isinstance(d, Model))

    @property
    def streams(self) -> tuple[FunctionalStream, ...]:
        """The functional streams, in the order of declaration; each is a table too."""
        return tuple(d for d in self.declared if isinstance(d, FunctionalStream))

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The alerts, in the order of declaration."""
        return tuple(d for d in self.declared if isinstance(d, Alert))

    @property
    def views(self) -> tuple[View, ...]:
        """The views, in the order of declaration."""
        return tuple(d for d in self.declared if isinstance(d, View))

    @property
    def serves(self) -> tuple[Serve, ...]:
        """The answers that go to sinks, in the order of declaration."""
        return tuple(d for d in self.declared if isinstance(d, Serve))

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

    @property
    def ordered_tables(self) -> tuple[Table, ...]:
        """The tables, each after all that it reads."""
        return tuple(d for d in self.ordered if isinstance(d, Table))

    @property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """The readers of each dataset, in the order of declaration."""
        readers: dict[str, list[str]] = {name: [] for name in self.datasets}
        for dataset in self.datasets.values():
            for read in dict.fromkeys(dataset.reads):
                if read in readers:
                    readers[read].append(dataset.name)
        return {name: tuple(names) for name, names in readers.items()}

    def trigger_of(self, dataset: Source | Table | Serve) -> str:
        """The trigger of a dataset: its own, else the app's."""
        return dataset.options.trigger or self.options.trigger or "default"

    def batch_of(self, dataset: Source | Table | Serve) -> str:
        """How much a batch of a dataset reads: its own bound, else the app's."""
        return dataset.options.batch or self.options.batch or DEFAULT_BOUND

    def keep_versions_of(self, dataset: Dataset | None) -> str:
        """How long earlier versions of a dataset's table can be read: its own, else the app's."""
        own = dataset.options.keep_versions if dataset else None
        return own or self.options.keep_versions or KEEP_VERSIONS

    def guarantee_of(self, serve: Serve | Alert) -> str | None:
        """How often rows of a served answer arrive; None while its trigger cannot be read."""
        if isinstance(serve, Alert):
            return "at least once, each under one key"
        try:
            trigger = Trigger.parse(self.trigger_of(serve))
        except ValueError:
            return None
        return " or ".join(dict.fromkeys(sink.guarantee(trigger) for sink in serve.to))

    def way_of(self, model: Model) -> str:
        """How a model learns: for each key in parallel, or all rows on one task, and why."""
        if model.way == "sums":
            return "one model of all rows, on all tasks: its statistics are sums, which merge"
        if model.way == "slices":
            return "one model of all rows, in the driver: a function gets the rows of each slice"
        if model.key:
            return f"one model for each {', '.join(model.key)}, many at a time"
        return "one model of all rows, on one task: each row is scored by what those before taught"

    def sinks_of(self, serve: Serve) -> tuple[Sink, ...]:
        """The sinks of a served answer, as they are written to in the trigger that is declared."""
        try:
            trigger = Trigger.parse(self.trigger_of(serve))
        except ValueError:
            trigger = Trigger("default")
        return serve.sinks_in(trigger)

    def with_trigger(self, trigger: str) -> Graph:
        """The same with one trigger for everything, whatever the datasets say."""
        declared = (
            d if isinstance(d, View) else replace(d, options=replace(d.options, trigger=trigger))
            for d in self.declared
        )
        options = replace(self.options, trigger=trigger)
        return replace(self, declared=tuple(declared), options=options)

    def upstream(self, name: str, steps: int | None = None) -> frozenset[str]:
        """Everything `name` is made from, declared or not, directly or in so many steps."""
        return _within(steps, name, {d.name: d.reads for d in self.datasets.values()})

    def downstream(self, name: str, steps: int | None = None) -> frozenset[str]:
        """Everything made from `name`, directly or in so many steps."""
        return _within(steps, name, self.readers)

    def select(
        self, selectors: str | Sequence[str] | None, exclude: str | Sequence[str] | None = None
    ) -> frozenset[str]:
        """Names chosen by dbt's syntax: `name`, `+name` with what it reads, `name+` with readers.

        A number says how many steps: `2+name`, `name+1`. Selectors in one text are separated by
        spaces. Without any, everything is chosen; what is excluded is left out at last.

        Raises:
            UNKNOWN_SELECTION: A selector names nothing of this application.
            NOTHING_SELECTED: Everything is excluded.
        """
        chosen = self._named(selectors, "--select") if selectors else frozenset(self.datasets)
        left = chosen - self._named(exclude or (), "--exclude")
        if exclude and not left:
            raise fault("NOTHING_SELECTED", excluded=" ".join(_selectors(exclude)))
        return left

    def _named(self, selectors: str | Iterable[str], option: str) -> frozenset[str]:
        chosen: set[str] = set()
        for selector in _selectors(selectors):
            match = _SELECTOR.fullmatch(selector)
            if match is None or match[3] not in self.datasets:
                declared = tuple(self.datasets)
                raise fault(
                    "UNKNOWN_SELECTION",
                    option=option,
                    selector=selector,
                    nearest=closest(selector.strip("+0123456789"), declared),
                    declared=listed(declared),
                )
            up, before, name, after, down = match.groups()
            chosen.add(name)
            chosen |= self.upstream(name, int(up) if up else None) if before else frozenset()
            chosen |= self.downstream(name, int(down) if down else None) if after else frozenset()
        return frozenset(chosen)

    def _sorter(self) -> TopologicalSorter[str]:
        datasets = self.datasets
        return TopologicalSorter(
            {d.name: [r for r in d.reads if r in datasets] for d in datasets.values()}
        )


def _selectors(selectors: str | Iterable[str]) -> list[str]:
    return (selectors if isinstance(selectors, str) else " ".join(selectors)).split()


def _within(
    steps: int | None, name: str, neighbours: Mapping[str, Sequence[str]]
) -> frozenset[str]:
    found: set[str] = set()
    front = {name}
    while front and (steps is None or steps > 0):
        front = {next_ for each in front for next_ in neighbours.get(each, ())} - found
        found |= front
        steps = None if steps is None else steps - 1
    return frozenset(found)
