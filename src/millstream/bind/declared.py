"""What an app declares, as a profile would have it, with everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream import check
from millstream.errors import MillstreamError, closest, fault, listed

if TYPE_CHECKING:
    from millstream.declare.register import Register
    from millstream.model.graph import Graph


@dataclass(frozen=True, slots=True)
class DeclaredApp:
    """The graph of an app, and what was refused on the way to it."""

    graph: Graph
    register: Register
    profile_faults: tuple[MillstreamError, ...]

    def faults(self, *, places: bool) -> tuple[MillstreamError, ...]:
        """Find everything that is wrong, without Spark.

        Args:
            places: Whether the places that sources read must exist.
        """
        refused, found = self.register.faults, check.faults(self.graph, places=places)
        if refused:
            found = tuple(error for error in found if not self._follows(error))
        return (*self.profile_faults, *sorted((*refused, *found), key=check.place))

    def faults_of(self, name: str) -> tuple[MillstreamError, ...]:
        """Return what is wrong with a dataset, or with anything upstream of it."""
        graph, refused = self.graph, self.register.refused
        if name not in graph.datasets and name not in refused:
            known = {*graph.datasets, *refused}
            return (
                fault(
                    "UNKNOWN_DATASET", name=name, nearest=closest(name, known), known=listed(known)
                ),
            )
        names = {name, *(graph.upstream(name) if name in graph.datasets else ())}
        reasons = (fault for each in sorted(names) for fault in self.register.faults_of(each))
        found = (f for f in check.faults_among(names, graph) if not self._follows(f))
        return (*self.profile_faults, *reasons, *found)

    def _follows(self, error: MillstreamError) -> bool:
        """Return whether a fault is only the consequence of one found before."""
        is_unmade = error.code == "UNKNOWN_INPUT" and error.facts["name"] in self.register.refused
        return is_unmade or error.code == "EMPTY_APP"
