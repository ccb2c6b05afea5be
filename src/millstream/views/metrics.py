"""An app in numbers, as Prometheus reads them."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    StateSetMetricFamily,
)
from prometheus_client.exposition import choose_encoder

from millstream.lake.rollback import moment_of
from millstream.observe.record import BOUNDS_S
from millstream.settings import __version__
from millstream.views.overview import STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from prometheus_client import Metric

    from millstream.observe.record import Totals
    from millstream.views.models import ModelStandingView
    from millstream.views.overview import DatasetOverview, OverviewView

_RULE = "rule: "
_SET_ASIDE = ("late", "future", "malformed", "rejected", "quarantined", "dropped", "blank")
_OPEN_METRICS = "application/openmetrics-text"


def metrics_text(
    overview: OverviewView,
    totals: Mapping[str, Totals],
    accept: str = _OPEN_METRICS,
    *,
    models: Sequence[ModelStandingView] = (),
) -> tuple[str, str]:
    """Write an app's metrics.

    Args:
        overview: The app at a glance.
        totals: What the batches of each dataset add up to.
        accept: The header of the request, which chooses between two formats.
        models: Its models at a glance.

    Returns:
        The text, and the type of its content.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(overview, totals, models))
    encode, content_type = choose_encoder(accept)
    return encode(registry).decode(), content_type


class _Collector:
    """The metrics of one look."""

    def __init__(
        self,
        overview: OverviewView,
        totals: Mapping[str, Totals],
        models: Sequence[ModelStandingView],
    ) -> None:
        self._overview, self._totals, self._models = overview, totals, models

    def collect(self) -> Iterator[Metric]:
        yield from self._of_app()
        yield from self._counters()
        yield from self._batches()
        yield from self._gauges()
        yield from self._health()
        yield from self._of_models()

    def _of_app(self) -> Iterator[Metric]:
        build = InfoMetricFamily("millstream_build", "The versions that run.")
        build.add_metric((), {"version": __version__, "spark_version": version("pyspark")})
        yield build
        up = GaugeMetricFamily(
            "millstream_driver_up", "Whether a driver holds the home.", labels=("app",)
        )
        up.add_metric((self._overview.app,), float(self._overview.driver is not None))
        yield up

    def _counters(self) -> Iterator[Metric]:
        rows = (
            ("millstream_input_rows", "Rows read.", "input"),
            ("millstream_output_rows", "Rows written, or right rows of a source.", "output"),
        )
        for name, help_, field in rows:
            family = self._family(CounterMetricFamily, name, help_)
            for dataset, totals in self._totals.items():
                family.add_metric(self._labels(dataset), getattr(totals, field))
            yield family
        aside = self._family(
            CounterMetricFamily, "millstream_rows_set_aside", "Rows set aside.", "reason"
        )
        late = self._family(
            CounterMetricFamily, "millstream_late_rows_dropped", "Rows that came too late."
        )
        rules = self._family(
            CounterMetricFamily,
            "millstream_expectation_rows",
            "Rows checked against a rule, by result.",
            "expectation",
            "result",
        )
        restarts = self._family(
            CounterMetricFamily,
            "millstream_restarts",
            "Failures after which a query was started again.",
            "reason",
        )
        for dataset, totals in self._totals.items():
            labels = self._labels(dataset)
            late.add_metric(labels, totals.counts.get("late", 0))
            for reason in _SET_ASIDE:
                if count := totals.counts.get(reason):
                    aside.add_metric((*labels, reason), count)
            for name, failed in totals.counts.items():
                if name.startswith(_RULE):
                    rule = name.removeprefix(_RULE)
                    rules.add_metric((*labels, rule, "fail"), failed)
                    rules.add_metric((*labels, rule, "pass"), max(totals.input - failed, 0))
            for code, count in totals.restarts.items():
                restarts.add_metric((*labels, code), count)
        yield from (aside, late, rules, restarts)

    def _batches(self) -> Iterator[Metric]:
        batches = self._family(
            CounterMetricFamily, "millstream_batches", "Batches, by how they ended.", "status"
        )
        phases = self._family(
            CounterMetricFamily,
            "millstream_batch_phase_seconds",
            "Time spent in batches, by Spark's phases.",
            "phase",
        )
        took = self._family(
            HistogramMetricFamily, "millstream_batch_duration_seconds", "How long batches took."
        )
        for dataset, totals in self._totals.items():
            labels = self._labels(dataset)
            batches.add_metric((*labels, "committed"), totals.batches)
            batches.add_metric((*labels, "failed"), sum(totals.restarts.values()))
            for phase, ms in totals.phases_ms.items():
                phases.add_metric((*labels, phase), ms / 1000)
            if totals.timed:
                within = zip(map(str, BOUNDS_S), map(float, totals.within), strict=True)
                buckets = [*within, ("+Inf", float(totals.timed))]
                took.add_metric(labels, buckets, totals.duration_ms / 1000)
        yield from (batches, phases, took)

    def _gauges(self) -> Iterator[Metric]:
        gauges = (
            ("source_lag_records", "Rows that are there and not read.", "behind_rows"),
            ("source_lag_seconds", "How long the oldest of them has been there.", "behind_s"),
            (
                "event_time_watermark_timestamp_seconds",
                "The watermark of the last batch.",
                "watermark",
            ),
            (
                "complete_to_timestamp_seconds",
                "The frontier of its rows.",
                "complete_to",
            ),
            ("last_commit_timestamp_seconds", "When the last batch was committed.", "committed_at"),
            ("state_rows", "Rows of state.", "state_rows"),
            ("state_bytes", "Memory of state.", "state_bytes"),
        )
        for name, help_, field in gauges:
            family = self._family(GaugeMetricFamily, f"millstream_{name}", help_)
            for dataset in self._overview.datasets:
                value: int | float | datetime | None = getattr(dataset, field)
                if value is not None:
                    number = value if isinstance(value, int | float) else value.timestamp()
                    family.add_metric(self._labels(dataset.name), number)
            yield family

    def _health(self) -> Iterator[Metric]:
        up = self._family(
            GaugeMetricFamily, "millstream_stream_up", "Whether a query runs and does not fail."
        )
        health = self._family(
            StateSetMetricFamily, "millstream_dataset_health", "How a dataset is."
        )
        for dataset in self._overview.datasets:
            labels = self._labels(dataset.name)
            up.add_metric(labels, float(_is_up(dataset)))
            states = {state.replace(" ", "_"): state == dataset.health.state for state in STATES}
            health.add_metric(labels, states)
        yield from (up, health)

    def _of_models(self) -> Iterator[Metric]:
        learnt = self._family(
            GaugeMetricFamily, "millstream_model_learnt_rows", "Rows that a model has learnt."
        )
        versions = self._family(
            GaugeMetricFamily,
            "millstream_model_version_timestamp_seconds",
            "The version of a model that is in use.",
        )
        measured = self._family(
            GaugeMetricFamily,
            "millstream_model_metric",
            "How good a model is: what is measured, over all rows or the last ones.",
            "metric",
            "rows",
        )
        drifts = self._family(
            CounterMetricFamily, "millstream_model_drifts", "Drifts that a detector has seen."
        )
        for model in self._models:
            labels = self._labels(model.name)
            learnt.add_metric(labels, model.learnt)
            drifts.add_metric(labels, model.drifts)
            if model.version is not None:
                versions.add_metric(labels, moment_of(model.version) / 1_000_000)
            for rows, metrics in (("all", model.metrics), ("recent", model.recent)):
                for name, value in metrics.items():
                    if value is not None:
                        measured.add_metric((*labels, name, rows), value)
        yield from (learnt, versions, measured, drifts)

    def _family(self, kind: Any, name: str, help_: str, *more: str) -> Any:
        return kind(name, help_, labels=("app", "dataset", *more))

    def _labels(self, dataset: str) -> tuple[str, str]:
        return self._overview.app, dataset


def _is_up(dataset: DatasetOverview) -> bool:
    return dataset.health.state not in ("failing", "not running")
