"""Errors of served answers: their sinks, and who may read whom."""

from __future__ import annotations

from millstream.errors.base import DeclarationError, Location


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
