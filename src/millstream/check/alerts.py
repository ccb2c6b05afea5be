"""Faults of alerts: their destinations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.model.destination import Destination

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import MillstreamError
    from millstream.model.graph import Graph


def destination_faults(graph: Graph) -> Iterator[MillstreamError]:
    """Faults that destinations find in their own settings."""
    for alert in graph.alerts:
        for destination in alert.to:
            if isinstance(destination, Destination):
                yield from destination.alert_faults(alert.name, alert.at)
