"""Batches as spans of OpenTelemetry: one for each batch, with one for each of its phases."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from millstream.observe.record import BatchRecord, EventRecord
from millstream.settings import __version__

if TYPE_CHECKING:
    from datetime import datetime

    from opentelemetry.sdk.trace.export import SpanExporter

    from millstream.observe.history_writer import Record
    from millstream.observe.record import RunRecord

_WITHIN_S = 5.0
_ORDER = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitBatch")
"""In which order a batch passes through its phases; others come last."""
_ERRORS = ("query_failed", "restarting", "run_failed")


class TraceExporter:
    """Sends spans over OTLP, to where the environment says."""

    def __init__(self, app: str, run: RunRecord, exporter: SpanExporter | None = None) -> None:
        resource = Resource.create(
            {"service.name": app, "service.instance.id": str(run.id), "host.name": run.host}
        )
        self._provider = TracerProvider(resource=resource)
        exporter = exporter or OTLPSpanExporter(timeout=_WITHIN_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("millstream", __version__)

    def export(self, record: Record) -> None:
        """Make the spans of a batch, or of a failure."""
        if isinstance(record, BatchRecord) and record.duration_ms is not None:
            self._batch(record, record.at - timedelta(milliseconds=record.duration_ms))
        elif isinstance(record, EventRecord) and record.kind in _ERRORS:
            self._failure(record)

    def close(self) -> None:
        """Send the spans that are left."""
        self._provider.shutdown()

    def _batch(self, record: BatchRecord, began: datetime) -> None:
        facts: dict[str, str | int] = {
            "millstream.dataset": record.dataset,
            "millstream.batch": record.batch,
            "millstream.run": record.run,
            "millstream.input_rows": record.input,
            "millstream.output_rows": record.output,
        }
        if record.behind_rows is not None:
            facts["millstream.behind_rows"] = record.behind_rows
        facts |= {f"millstream.rows.{name}": rows for name, rows in record.counts.items()}
        span = self._tracer.start_span(
            f"{record.dataset} batch", start_time=_ns(began), attributes=facts
        )
        inside = set_span_in_context(span)
        for phase in sorted(record.phases, key=_place):
            ends = began + timedelta(milliseconds=record.phases[phase])
            part = self._tracer.start_span(phase, context=inside, start_time=_ns(began))
            part.end(_ns(ends))
            began = ends
        span.end(_ns(record.at))

    def _failure(self, record: EventRecord) -> None:
        known = {"dataset": record.dataset, "code": record.code, "fix": record.fix}
        facts = {f"millstream.{name}": text for name, text in known.items() if text}
        span = self._tracer.start_span(record.kind, start_time=_ns(record.at), attributes=facts)
        span.set_status(Status(StatusCode.ERROR, record.what or record.detail))
        span.end(_ns(record.at))


def _place(phase: str) -> int:
    return _ORDER.index(phase) if phase in _ORDER else len(_ORDER)


def _ns(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000) * 1000
