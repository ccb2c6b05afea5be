"""Errors of triggers: what cannot run in the one that was asked for, and what can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import ClusterError, DeclarationError, Location

if TYPE_CHECKING:
    from collections.abc import Sequence

_BATCHES = "trigger='default' or an interval"


class TriggerTargetError(DeclarationError):
    """A dataset that is written in batches has a trigger without batches."""

    code = "TRIGGER_TARGET"

    def __init__(self, dataset: str, *, kind: str, trigger: str, at: Location) -> None:
        if kind == "source":
            why, instead = "is landed, which is done in batches", "declare it with live=True"
        else:
            why = f"is a {kind}, which is written in batches"
            instead = "serve it with @app.serve(to=ms.Kafka(…))"
        super().__init__(
            f"{kind} {dataset!r} has trigger={trigger!r} and {why}",
            fix=f"{instead}, or give it {_BATCHES}",
            at=at.of("trigger"),
        )


class TriggerInputError(DeclarationError):
    """A served answer without batches reads something that comes in batches."""

    code = "TRIGGER_INPUT"

    def __init__(
        self, serve: str, *, trigger: str, reads: str, why: str, instead: str, at: Location
    ) -> None:
        super().__init__(
            f"serve {serve!r} has trigger={trigger!r} and reads {reads!r}, {why}",
            fix=f"{instead}, or give {serve!r} {_BATCHES}",
            at=at.of("from", reads),
        )


class TriggerSinkError(DeclarationError):
    """A sink can only be written to in batches."""

    code = "TRIGGER_SINK"

    def __init__(
        self, serve: str, *, trigger: str, sink: str, can: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"serve {serve!r} has trigger={trigger!r} and goes to {sink}, "
            "which cannot be written to in that trigger",
            fix=f"serve it to {' or '.join(can)}, or give it {_BATCHES}",
            at=at.of("to"),
        )


class TriggerModeError(DeclarationError):
    """Real time has a mode that it does not know."""

    code = "TRIGGER_MODE"

    def __init__(self, serve: str, *, trigger: str, mode: str, at: Location) -> None:
        super().__init__(
            f"serve {serve!r} has trigger={trigger!r} and mode={mode!r}",
            fix="leave the mode out, or use mode='update': a row is sent as soon as it is there",
            at=at.of("mode"),
        )


class TriggerOperatorError(DeclarationError):
    """An operator of a query cannot run in the trigger that was asked for."""

    code = "TRIGGER_OPERATOR"

    def __init__(
        self, serve: str, *, trigger: str, operator: str, instead: str, at: Location
    ) -> None:
        self.operator = operator
        super().__init__(
            f"serve {serve!r} has trigger={trigger!r}, in which {operator} cannot run",
            fix=f"{instead}, or give it {_BATCHES}",
            at=at,
        )


class TaskSlotsError(ClusterError):
    """Queries without batches want more tasks at a time than the cluster runs."""

    code = "TASK_SLOTS"

    def __init__(self, queries: Sequence[str], *, wanted: int, slots: int, master: str) -> None:
        named = ", ".join(repr(name) for name in queries)
        super().__init__(
            f"{named} and what else runs want {wanted} tasks at a time, and {master} runs {slots}",
            fix=f"give it {wanted} task slots or more, such as --master 'local[{wanted}]': "
            "without batches each partition of a topic keeps one busy, and the others would wait",
        )
