"""Faults of options: values that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import Location, MillstreamError, closest, fault
from millstream.model.dataset import LATE_POLICIES, MODES, ON_VIOLATION, Alert, Serve, Source, View
from millstream.model.duration import parse_duration
from millstream.model.trigger import TRIGGERS, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.model.graph import Graph


_LENGTHS = 'a number and a unit, such as "10 minutes", "1 day" or "500 ms"'


def refused_options(graph: Graph) -> Iterator[MillstreamError]:
    """Options whose value is not one of a few."""
    for dataset in graph.declared:
        if isinstance(dataset, View):
            continue
        named: list[tuple[str, str, tuple[str, ...]]] = []
        if not isinstance(dataset, Serve):
            named.append(("on_violation", dataset.expect.on_violation, ON_VIOLATION))
        if isinstance(dataset, Source):
            named.append(("late", dataset.late, LATE_POLICIES))
        elif dataset.mode is not None:
            named.append(("mode", dataset.mode, MODES))
        for option, value, allowed in named:
            if value not in allowed:
                yield fault(
                    "OPTION_REFUSED",
                    at=dataset.at,
                    dataset=dataset.name,
                    option=option,
                    value=value,
                    nearest=closest(str(value), allowed),
                    allowed=", ".join(allowed),
                )


def refused_durations(graph: Graph) -> Iterator[MillstreamError]:
    """Lengths of time that cannot be read."""
    if graph.trigger is not None and not _is_trigger(graph.trigger):
        yield _refused_duration(graph.app, "trigger", graph.trigger, None)
    for dataset in graph.declared:
        options: dict[str, str | None] = {}
        if not isinstance(dataset, View):
            options["trigger"] = dataset.trigger
        if isinstance(dataset, Source):
            times = {"watermark": dataset.watermark, "future": dataset.future}
            options |= {**times, "idle": dataset.idle}
        if isinstance(dataset, Alert):
            options |= {"cooldown": dataset.cooldown, "retry_for": dataset.retry_for}
        for option, value in options.items():
            if value is None:
                continue
            try:
                Trigger.parse(value) if option == "trigger" else parse_duration(value)
            except ValueError:
                yield _refused_duration(dataset.name, option, value, dataset.at)


def _refused_duration(
    dataset: str, option: str, value: str, at: Location | None
) -> MillstreamError:
    wanted, expected = "length of time", _LENGTHS
    if option == "trigger":
        wanted, expected = "trigger", TRIGGERS
    return fault(
        "DURATION_REFUSED",
        at=at,
        dataset=dataset,
        option=option,
        value=value,
        wanted=wanted,
        expected=expected,
    )


def _is_trigger(text: str) -> bool:
    try:
        Trigger.parse(text)
    except ValueError:
        return False
    return True
