"""When a query runs its next batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Trigger:
    """When the next batch starts: at once, at an interval, or only until nothing is left."""

    kind: Literal["default", "interval", "once"]
    interval: timedelta | None = None

    @staticmethod
    def parse(text: str) -> Trigger:
        """Read a trigger: "default", "once" or an interval such as "5 seconds".

        Raises:
            ValueError: The text is none of these.

        >>> Trigger.parse("5 seconds").interval
        datetime.timedelta(seconds=5)
        """
        if text == "default":
            return Trigger("default")
        if text == "once":
            return Trigger("once")
        return Trigger("interval", parse_duration(text))

    def __str__(self) -> str:
        return self.kind if self.interval is None else f"{self.interval.total_seconds():g} s"
