"""Errors of served answers: their sinks, and who may read whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import DeclarationError, Location, UserCodeError

if TYPE_CHECKING:
    from collections.abc import Sequence


class NotASinkError(DeclarationError):
    """An answer is served to something rows cannot be written to."""

    code = "NOT_A_SINK"

    def __init__(self, serve: str, *, got: str, at: Location) -> None:
        super().__init__(
            f"serve {serve!r} has to={got}",
            fix="serve it to ms.SQLite, ms.Postgres, ms.Redis, ms.Kafka, ms.DeltaPath, ms.FileSink "
            "or ms.Console",
            at=at.of("to"),
        )


class SeveralSinksError(DeclarationError):
    """An answer is served to several sinks that Spark itself writes to."""

    code = "SEVERAL_SINKS"

    def __init__(self, serve: str, *, sinks: int, at: Location) -> None:
        super().__init__(
            f"serve {serve!r} goes to {sinks} sinks, and a query of Spark's writes to one",
            fix="declare a serve for each; what they share can be a view",
            at=at.of("to"),
        )


class ServedInputError(DeclarationError):
    """A dataset reads an answer that is served, not stored."""

    code = "SERVED_INPUT"

    def __init__(self, dataset: str, *, reads: str, at: Location) -> None:
        super().__init__(
            f"{dataset!r} reads {reads!r}, which is served, not stored",
            fix=f"read what {reads!r} reads, or move its query into a view that both read",
            at=at.of("from", reads),
        )


class ServedChangesError(DeclarationError):
    """An answer made from rows that change is served in a way that only adds rows."""

    code = "SERVED_CHANGES"

    def __init__(
        self, serve: str, *, reads: str, reads_mode: str, why: str, use: str, at: Location
    ) -> None:
        super().__init__(
            f"serve {serve!r} reads {reads!r}, whose rows change (mode={reads_mode!r}), {why}",
            fix=use,
            at=at.of("from", reads),
        )


class SinkFunctionError(DeclarationError):
    """A function that answers are served to cannot be called with them."""

    code = "SINK_FUNCTION"

    def __init__(
        self, serve: str, *, name: str, handed: Sequence[str], why: str, at: Location
    ) -> None:
        super().__init__(
            f"serve {serve!r} goes to function {name!r}, which cannot be called: {why}",
            fix=f"have it take {len(handed)} arguments: {name}({', '.join(handed)})",
            at=at.of("to"),
        )


class SameSinksError(DeclarationError):
    """An answer is served to two functions of one name."""

    code = "SAME_SINKS"

    def __init__(self, serve: str, *, name: str, at: Location) -> None:
        super().__init__(
            f"serve {serve!r} goes to two functions {name!r}, and it is noted by that name "
            "which batch was handed over",
            fix="name one: ms.sink(function, name='…')",
            at=at.of("to"),
        )


class SinkRaisedError(UserCodeError):
    """A function that an answer is served to raised."""

    code = "SINK_RAISED"

    def __init__(self, serve: str, *, name: str, cause: str, at: Location) -> None:
        super().__init__(
            f"function {name!r}, which {serve!r} is served to, raises {cause}",
            fix="mend it and start again: the batch is handed over again, under the same id; raise "
            "OSError, such as ConnectionError, for what may pass by itself",
            at=at.of("to"),
        )
