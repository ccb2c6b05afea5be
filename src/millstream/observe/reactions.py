"""Calls the functions of an app that react to events, in a thread of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.observe import Event
from millstream.observe.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.model.reaction import Reaction
    from millstream.observe.record import EventRecord

_MOST_WAITING = 1000


class Reactions:
    """The functions of an app that react to events; none of them stops the app or waits for it."""

    def __init__(self, reactions: Sequence[Reaction], on_event: Callable[[Event], None]) -> None:
        self._reactions, self._on_event = reactions, on_event
        self._background = Background("reactions", self._call_all, most=_MOST_WAITING)

    def add(self, record: EventRecord) -> None:
        """Call the functions for an event, later; leave it out if they are far behind."""
        is_wanted = any(record.kind in reaction.kinds for reaction in self._reactions)
        if is_wanted and not self._background.put(record):
            detail = f"{_MOST_WAITING} events wait for the functions of the app"
            self._on_event(Event("reaction_failed", record.dataset, detail))

    def close(self) -> None:
        """Let the functions finish, for a while."""
        self._background.close()

    def _call_all(self, record: EventRecord) -> None:
        for reaction in self._reactions:
            if record.kind in reaction.kinds:
                self._call(reaction, record)

    def _call(self, reaction: Reaction, record: EventRecord) -> None:
        try:
            reaction.act(record)
        except Exception as error:
            raised = fault(
                "REACTION_RAISED",
                at=reaction.at,
                function=getattr(reaction.act, "__name__", str(reaction.act)),
                kind=record.kind,
                cause=f"{type(error).__name__}: {error}",
            )
            self._on_event(Event("reaction_failed", record.dataset, error=raised))
