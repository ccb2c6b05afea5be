"""When a query runs its next batch, or that it runs without batches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from millstream.model.duration import parse_duration, to_text

TRIGGERS = (
    '"default", "once", an interval such as "5 seconds" or "500 ms", "realtime", '
    '"realtime 10 seconds" (1 second or more) or "continuous 1 second"'
)
"""What a trigger can be."""

RowWiseKind = Literal["realtime", "continuous"]
_EVERY = {"realtime": timedelta(seconds=5), "continuous": timedelta(seconds=1)}
"""How often a query without batches records its progress by default."""
_LEAST = {"realtime": timedelta(seconds=1), "continuous": timedelta(milliseconds=1)}


@dataclass(frozen=True, slots=True)
class Trigger:
    """When the next batch starts: at once, at an interval, or only until all input is processed.

    In real time and continuously, each row is processed as it arrives; the interval then says how
    often the query records its progress.
    """

    kind: Literal["default", "interval", "once", "realtime", "continuous"]
    interval: timedelta | None = None

    @staticmethod
    def parse(text: str) -> Trigger:
        """Read a trigger, such as "default", "once", "5 seconds" or "realtime 10 seconds".

        Raises:
            ValueError: The text is none of these.

        >>> Trigger.parse("5 seconds").interval
        datetime.timedelta(seconds=5)
        >>> str(Trigger.parse("continuous"))
        'continuous 1 second'
        """
        if text in ("default", "once"):
            return Trigger(text)  # type: ignore[arg-type]
        for kind in get_args(RowWiseKind):
            if text.startswith(kind):
                length = text.removeprefix(kind)
                every = parse_duration(length) if length else _EVERY[kind]
                if every < _LEAST[kind]:
                    raise ValueError(text)
                return Trigger(kind, every)
        return Trigger("interval", parse_duration(text))

    @property
    def is_row_wise(self) -> bool:
        """Whether rows are taken one by one, without batches."""
        return self.kind in get_args(RowWiseKind)

    def __str__(self) -> str:
        if self.interval is None:
            return self.kind
        if self.is_row_wise:
            return f"{self.kind} {to_text(self.interval)}"
        return f"{self.interval.total_seconds():g} s"
