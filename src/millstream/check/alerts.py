"""Faults of destinations of alerts and objectives, and of functions that react to events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import Location, closest, fault, listed
from millstream.model.destination import Destination
from millstream.model.reaction import REACTION_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import MillstreamError
    from millstream.model.graph import Graph


def unknown_events(graph: Graph) -> Iterator[MillstreamError]:
    """Functions that react to events that do not exist."""
    for reaction in graph.reactions:
        for kind in reaction.kinds:
            if kind not in REACTION_KINDS:
                yield fault(
                    "UNKNOWN_EVENT",
                    at=reaction.at,
                    function=getattr(reaction.act, "__name__", str(reaction.act)),
                    kind=kind,
                    nearest=closest(kind, REACTION_KINDS),
                    known=listed(sorted(REACTION_KINDS)),
                )


def destination_faults(graph: Graph) -> Iterator[MillstreamError]:
    """Faults that destinations find in their own settings."""
    for alert in graph.alerts:
        for destination in alert.to:
            if isinstance(destination, Destination):
                yield from destination.alert_faults(alert.name, alert.at)


def notify_faults(graph: Graph) -> Iterator[MillstreamError]:
    """Faults of the destinations of objectives."""
    at = graph.at or Location("", 0)
    for destination in graph.notify:
        if isinstance(destination, Destination):
            yield from destination.alert_faults("notify", at)
        else:
            got = type(destination).__name__
            yield fault("NOT_A_DESTINATION", at=graph.at, alert="notify", got=got)
