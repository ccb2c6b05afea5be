"""Errors of the test kit: a script that asks for what cannot be, and what a proof has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import (
    CommandError,
    Location,
    MillstreamError,
    UserCodeError,
    closest,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class UnknownCrashPointError(CommandError):
    """A test names a crash point that does not exist."""

    code = "UNKNOWN_CRASH_POINT"

    def __init__(self, point: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no crash point {point!r}",
            fix=f"{closest(point, known)}crash points are {listed(known)}",
        )


class CrashNotReachedError(CommandError):
    """A script wants a crash at a point that the batch does not come by."""

    code = "CRASH_NOT_REACHED"

    def __init__(self, point: str, *, query: str | None, passed: Sequence[str]) -> None:
        whose = f" of {query!r}" if query else ""
        super().__init__(
            f"nothing came by {point!r}{whose}",
            fix=f"send rows that reach it first; this batch came by {listed(passed)}",
        )


class DriverDeadError(CommandError):
    """A script goes on after a crash without a restart."""

    code = "DRIVER_DEAD"

    def __init__(self, verb: str) -> None:
        super().__init__(
            f"{verb}() needs a driver, and it crashed", fix="call restart() after crash()"
        )


class ClockBackwardsError(CommandError):
    """A script wants time to go backwards."""

    code = "CLOCK_BACKWARDS"

    def __init__(self, by: str) -> None:
        super().__init__(
            f"the clock cannot advance by {by!r}",
            fix='give a positive length of time such as "30 minutes"; '
            "a late row is sent with an earlier event time",
        )


class UnknownInScriptError(CommandError):
    """A script names a source, table or column that the app does not have."""

    code = "UNKNOWN_IN_SCRIPT"

    def __init__(self, kind: str, name: str, *, owner: str, known: Sequence[str]) -> None:
        super().__init__(
            f"{owner} has no {kind} {name!r}",
            fix=f"{closest(name, known)}it has {listed(known)}",
        )


class RowsOfNoSourceError(CommandError):
    """Rows are given without the name of their source, and there is not just one."""

    code = "ROWS_OF_NO_SOURCE"

    def __init__(self, app: str, *, sources: Sequence[str]) -> None:
        super().__init__(
            f"app {app!r} has {len(sources)} sources, and the rows do not say whose they are",
            fix=f"give them as {{source: rows}}; its sources are {listed(sources)}",
        )


class NotDeterministicError(UserCodeError):
    """A function gives other rows for the same rows."""

    code = "NOT_DETERMINISTIC"

    def __init__(self, table: str, *, one: str, other: str, at: Location, script: str = "") -> None:
        self.table, self.one, self.other, self.script = table, one, other, script
        shown = f"\nThis script shows it:\n\n{script}" if script else ""
        super().__init__(
            f"{table!r} gives other rows each time for the same input, or by its order: "
            f"once {one}, once {other}{shown}",
            fix="leave out rand(), uuid(), now() and first() without an order; "
            "take times from the rows, choose by event time",
            at=at,
        )

    def shown_by(self, script: str) -> NotDeterministicError:
        """Add the script that shows it."""
        at = self.at or Location("app", 1)
        return NotDeterministicError(
            self.table, one=self.one, other=self.other, at=at, script=script
        )


class NotPrefixConsistentError(MillstreamError, AssertionError):
    """A table is not the batch answer over what has landed."""

    code = "NOT_PREFIX_CONSISTENT"

    def __init__(self, told: Sequence[str], *, script: str) -> None:
        self.script = script
        super().__init__(
            "the stream is not the batch answer over what has landed:\n  "
            + "\n  ".join(told)
            + f"\nThis script shows it:\n\n{script}",
            fix="paste it as a test, and change the function until it passes",
        )


class StraceMissingError(CommandError):
    """Drivers are to be killed at system calls, and nothing on this machine can do it."""

    code = "STRACE_MISSING"

    def __init__(self) -> None:
        super().__init__(
            "killing drivers at system calls needs strace, which is not installed",
            fix="apt-get install strace, or leave these faults out with --without call",
        )


class NameNotFoundError(CommandError):
    """A command names something in Python that cannot be found."""

    code = "NAME_NOT_FOUND"

    def __init__(self, name: str, *, cause: str) -> None:
        super().__init__(
            f"there is no {name!r}: {cause}",
            fix="write module:name, as it would be imported in this folder",
        )


class DamageUnnoticedError(MillstreamError, AssertionError):
    """Tables are wrong after a checkpoint was damaged, and nothing said so."""

    code = "DAMAGE_UNNOTICED"

    def __init__(self, told: Sequence[str], *, seed: int) -> None:
        super().__init__(
            "tables are wrong after damage, and nothing said so:\n  " + "\n  ".join(told),
            fix=f"run it again with --seed {seed}: the same cases come in the same order",
        )


class NotExactlyOnceError(MillstreamError, AssertionError):
    """Tables are not right after drivers were killed, or a driver did not behave."""

    code = "NOT_EXACTLY_ONCE"

    def __init__(self, told: Sequence[str], *, seed: int) -> None:
        super().__init__(
            "the tables are not right after what was done to the drivers:\n  " + "\n  ".join(told),
            fix=f"run it again with --seed {seed}: the same faults come in the same order",
        )


class MarksMissingError(CommandError):
    """A document has no place for a table."""

    code = "MARKS_MISSING"

    def __init__(self, document: str, *, marks: Sequence[str]) -> None:
        super().__init__(
            f"{document!r} has no place for the table",
            fix=f"write {' and '.join(marks)} where it is to stand",
        )


class ExtraMissingError(CommandError):
    """A part that is installed by an extra is not installed."""

    code = "EXTRA_MISSING"

    def __init__(self, what: str, *, module: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the module {module!r}, which is not installed",
            fix=f'pip install "millstream[{extra}]"',
        )


class ContractBrokenError(MillstreamError, AssertionError):
    """A sink or source does not keep what it is to promise."""

    code = "CONTRACT_BROKEN"

    def __init__(self, *, wanted: str, found: str, broken: Sequence[str]) -> None:
        super().__init__(
            f"it is to promise {wanted}, and may promise {found}:\n  " + "\n  ".join(broken),
            fix="write the rows, the batch and the epoch in one transaction, "
            "and look at batch and epoch in it first",
        )
