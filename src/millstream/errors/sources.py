"""Errors of sources: their schema, their event time and where they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import DeclarationError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class SourceParametersError(DeclarationError):
    """A source function has parameters."""

    code = "SOURCE_PARAMETERS"

    def __init__(self, source: str, *, parameters: Sequence[str], at: Location) -> None:
        super().__init__(
            f"source {source!r} has parameters: {', '.join(parameters)}",
            fix="a source reads no dataset: leave the parameters out, or use @app.table",
            at=at,
        )


class SchemaError(DeclarationError):
    """A schema cannot be read, or its format cannot carry it."""

    code = "SCHEMA"

    def __init__(
        self, fault: str, *, fix: str, text: str | None = None, offset: int | None = None
    ) -> None:
        self.text, self.offset = text, offset
        where = ""
        if text is not None and offset is not None:
            near = text[offset : offset + 24]
            place = f"character {offset + 1}, near {near!r}" if near.strip() else "its end"
            where = f" (in the schema text, at {place})"
        super().__init__(fault + where, fix=fix)


class WatermarkMissingError(DeclarationError):
    """A source has an event time without a watermark, or the other way round."""

    code = "WATERMARK_MISSING"

    def __init__(self, source: str, *, has: str, lacks: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} has {has} and no {lacks}",
            fix='give both, such as event_time="at", watermark="10 minutes"',
            at=at.of("watermark" if lacks == "event_time" else "event_time"),
        )


class EventTimeColumnError(DeclarationError):
    """The event time is not a timestamp column of the schema."""

    code = "EVENT_TIME_COLUMN"

    def __init__(
        self, column: str, *, source: str, got: str | None, columns: Sequence[str], at: Location
    ) -> None:
        fact = "is not in its schema" if got is None else f"is {got}, not TIMESTAMP"
        super().__init__(
            f"source {source!r} has event_time={column!r}, which {fact}",
            fix=f"{closest(column, columns) if got is None else ''}name a TIMESTAMP column; "
            f"the schema has {listed(columns)}",
            at=at.of("event_time"),
        )


class PathMissingError(DeclarationError):
    """A source reads a path that does not exist."""

    code = "PATH_MISSING"

    def __init__(self, path: str, *, source: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} reads {path!r}, which does not exist",
            fix="make the folder, or mend the path (relative paths start where the command runs)",
            at=at.of("path"),
        )


class LiveInBatchError(DeclarationError):
    """A batch run meets a source of which nothing is landed."""

    code = "LIVE_IN_BATCH"

    def __init__(self, source: str, *, at: Location) -> None:
        super().__init__(
            f"source {source!r} is live, so nothing of it is landed to run a batch over",
            fix="leave live=True out to land it",
            at=at.of("live"),
        )


class LiveReceiverError(DeclarationError):
    """A source that cannot replay is declared live."""

    code = "LIVE_RECEIVER"

    def __init__(self, source: str, *, connector: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} is live, but what {connector} receives cannot be asked for again",
            fix="leave live=True out: its records are kept by landing them",
            at=at,
        )


class DeltaMissingError(DeclarationError):
    """A source reads a Delta table that does not exist."""

    code = "DELTA_MISSING"

    def __init__(self, path: str, *, source: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} reads {path!r}, where there is no Delta table",
            fix="mend the path: the folder of a Delta table has _delta_log in it",
            at=at,
        )


class AvroSchemaError(DeclarationError):
    """A source reads Avro, and its schemas are missing or cannot be read."""

    code = "AVRO_SCHEMA"

    def __init__(self, why: str, *, option: str, source: str, at: Location) -> None:
        super().__init__(
            f"source {source!r}: {option} {why}",
            fix='give avro=ms.AvroOptions(writer="orders.avsc"), or writers={"7": "v7.avsc"} '
            "if records begin with the id of their schema",
            at=at.of(option),
        )


class AvroColumnError(DeclarationError):
    """The Avro schema of a source cannot give one of its columns."""

    code = "AVRO_COLUMN"

    def __init__(
        self,
        column: str,
        *,
        source: str,
        schema: str,
        why: str,
        can_default: bool,
        at: Location,
    ) -> None:
        self.column = column
        change = "leave it out" if can_default else "declare it as it is written, or leave it out"
        default = ", or give avro.reader: a schema with a default for it" if can_default else ""
        super().__init__(
            f"source {source!r}: column {column!r} cannot be had from {schema!r}: {why}",
            fix=f"{change}{default}",
            at=at.of("schema"),
        )


class NotSampledError(DeclarationError):
    """A preview needs records that can be had only once."""

    code = "NOT_SAMPLED"

    def __init__(self, source: str, *, connector: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} cannot be sampled: what {connector} receives can be had only once",
            fix="run the app for a while: a preview is then made of what has landed",
            at=at,
        )
