"""What is wrong with an application: every rule over the graph, all faults at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.check.alerts import destination_faults, notify_faults, unknown_events
from millstream.check.names import cycles, duplicate_names, refused_names, unknown_inputs
from millstream.check.options import (
    refused_durations,
    refused_objectives,
    refused_options,
    refused_windows,
    uncounted_rows,
    unused_partitions,
)
from millstream.check.serve import (
    same_sinks,
    served_changes,
    served_inputs,
    several_sinks,
    sink_faults,
)
from millstream.check.sources import (
    connector_faults,
    empty_app,
    event_times,
    idle_faults,
    live_receivers,
    missing_places,
    refused_schemas,
    unbounded_event_times,
)
from millstream.check.state import states_kept_forever
from millstream.check.tables import changing_inputs, keys, no_inputs
from millstream.check.triggers import unfit_triggers
from millstream.model.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from millstream.errors import MillstreamError

RULES: tuple[Callable[[Graph], Iterator[MillstreamError]], ...] = (
    empty_app,
    refused_names,
    duplicate_names,
    no_inputs,
    unknown_inputs,
    cycles,
    refused_options,
    refused_durations,
    refused_windows,
    uncounted_rows,
    unused_partitions,
    refused_objectives,
    refused_schemas,
    event_times,
    unbounded_event_times,
    idle_faults,
    live_receivers,
    connector_faults,
    keys,
    changing_inputs,
    served_inputs,
    served_changes,
    several_sinks,
    same_sinks,
    sink_faults,
    destination_faults,
    unfit_triggers,
    unknown_events,
    notify_faults,
)

WARNINGS: tuple[Callable[[Graph], Iterator[MillstreamError]], ...] = (states_kept_forever,)
"""What an app may run with all the same."""


def faults(graph: Graph, *, places: bool = True) -> tuple[MillstreamError, ...]:
    """Find every fault of the graph, in the order of files and lines.

    Args:
        graph: What is declared.
        places: Whether the places that its sources read must exist; made-up rows need none.
    """
    rules = (*RULES, missing_places) if places else RULES
    found = [error for rule in rules for error in rule(graph)]
    return tuple(sorted(found, key=place))


def warnings(graph: Graph) -> tuple[MillstreamError, ...]:
    """Find what may become a fault, in the order of files and lines."""
    found = [error for rule in WARNINGS for error in rule(graph)]
    return tuple(sorted(found, key=place))


def faults_among(names: Collection[str], graph: Graph) -> tuple[MillstreamError, ...]:
    """Find the faults of some datasets, whatever may be wrong with others."""
    part = Graph(graph.app, tuple(d for d in graph.declared if d.name in names))
    # What a fault offers as a remedy may be another dataset.
    whole = {(type(f), f.at, f.what): f for f in faults(graph)}
    return tuple(whole.get((type(f), f.at, f.what), f) for f in faults(part))


def place(error: MillstreamError) -> tuple[int, str, int]:
    """Return the cell or file and line an error points at; one that points nowhere comes first."""
    return (error.at.cell or 0, error.at.file, error.at.line) if error.at else (0, "", 0)
