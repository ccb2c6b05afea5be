"""Errors of options: those that do not exist, and values that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import DeclarationError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


TRIGGERS = (
    '"default", "once", an interval such as "5 seconds" or "500 ms", "realtime", '
    '"realtime 10 seconds" (1 second or more) or "continuous 1 second"'
)
"""What a trigger can be."""


class OptionRefusedError(DeclarationError):
    """An option has a value that does not exist."""

    code = "OPTION_REFUSED"

    def __init__(
        self, option: str, value: object, *, dataset: str, allowed: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"{dataset!r} has {option}={value!r}",
            fix=f"{closest(str(value), allowed)}{option} is one of {', '.join(allowed)}",
            at=at.of(option),
        )


class UnknownOptionError(DeclarationError):
    """An option does not exist."""

    code = "UNKNOWN_OPTION"

    def __init__(self, option: str, *, dataset: str, known: Sequence[str], at: Location) -> None:
        super().__init__(
            f"{dataset!r} has the option {option!r}, which does not exist",
            fix=f"{closest(option, known)}options are {listed(known)}",
            at=at.of(option),
        )


class OptionUnusedError(DeclarationError):
    """An option is set that another one leaves without effect."""

    code = "OPTION_UNUSED"

    def __init__(
        self, option: str, *, value: object, source: str, by: str, fix: str, at: Location
    ) -> None:
        super().__init__(
            f"source {source!r} has {option}={value!r}, which {by} does not use",
            fix=fix,
            at=at.of(option),
        )


class DurationRefusedError(DeclarationError):
    """A length of time cannot be read."""

    code = "DURATION_REFUSED"

    def __init__(self, option: str, value: str, *, dataset: str, at: Location | None) -> None:
        is_trigger = option == "trigger"
        length = 'a number and a unit, such as "10 minutes", "1 day" or "500 ms"'
        super().__init__(
            f"{dataset!r} has {option}={value!r}, which is not a "
            f"{'trigger' if is_trigger else 'length of time'}",
            fix=f"write {TRIGGERS if is_trigger else length}",
            at=at and at.of(option),
        )


class FormatRefusedError(DeclarationError):
    """A connector cannot read the format asked for, or a sink cannot write it."""

    code = "FORMAT_REFUSED"

    def __init__(
        self, got: str, *, source: str, allowed: Sequence[str], at: Location, kind: str = "source"
    ) -> None:
        super().__init__(
            f"{kind} {source!r} has format={got!r}",
            fix=f"{closest(got, allowed)}formats are {', '.join(allowed)}",
            at=at.of("format"),
        )


class ShareRefusedError(DeclarationError):
    """A generator's setting is out of range."""

    code = "SHARE_REFUSED"

    def __init__(
        self, option: str, value: float, *, source: str, expected: str, at: Location
    ) -> None:
        super().__init__(
            f"source {source!r} has {option}={value!r}", fix=f"give {expected}", at=at.of(option)
        )
