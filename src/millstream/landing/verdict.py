"""The verdict on every row of a batch, computed in Arrow where the rows are decoded.

What changes from batch to batch (the watermark, the moment of arrival) is data here; in a Spark
expression it would be a literal, and Spark would compile new code for every batch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode import BLANK, NO_RECORD
from millstream.landing.event_time import within_years
from millstream.landing.idle import in_microseconds
from millstream.model.dataset import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.landing.text_time import TextTime
    from millstream.model.dataset import Source

DAY = "_day"
"""The column of the day of the event time, of a source that is partitioned by it."""
UNSURE = "unsure"
"""The verdict of a row whose event time Spark must compute; such rows are never landed."""
_MOMENT = pa.timestamp("us", tz="UTC")
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """How rows of one source are judged."""

    event_time: str | None
    future: str
    """As the user wrote it, for the reason."""
    future_us: int
    event_time_from: str | None = None
    """The expression of an event time that is computed, for the reason."""
    by_day: bool = False
    """Whether right rows are partitioned by the day of their event time."""

    @staticmethod
    def of(source: Source) -> Rule:
        """Return the rule of a source."""
        future_us = in_microseconds(source.future)
        by_day = source.partition_by is not None
        return Rule(source.event_time, source.future, future_us, source.event_time_from, by_day)

    @property
    def null_reason(self) -> str:
        """The reason of a row without event time."""
        expression = self.event_time_from
        because = "" if expression is None else f": {expression} gives no time"
        return f"event time {self.event_time!r} is null{because}"


@dataclass(frozen=True, slots=True)
class Moment:
    """What a batch knows of time, in microseconds since 1970."""

    batch: int = -1
    arrived: int | None = None
    """When the batch was planned; for a live source, when it is judged."""
    bound: int | None = None
    """The watermark: rows before it are late."""


def judge(
    batches: Iterator[pa.RecordBatch],
    rule: Rule,
    moment: Moment,
    compute: Callable[[pa.RecordBatch], Any] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Add arrival, batch and verdict to decoded rows, and the reason where it is not ok.

    Args:
        batches: Decoded rows.
        rule: How they are judged.
        moment: When.
        compute: Computes the event time; None if the rows have it.
    """
    for decoded in batches:
        batch = _timed(decoded, rule, compute) if rule.event_time_from else decoded
        arrived = moment.arrived if moment.arrived is not None else time.time_ns() // 1000
        verdicts, reasons = _judge(batch, rule, arrived, moment.bound)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns["_reason"] = reasons
        columns["_arrived_at"] = _repeat(arrived, batch.num_rows, _MOMENT)
        columns["_batch"] = _repeat(moment.batch, batch.num_rows, pa.int64())
        columns["_verdict"] = verdicts
        if rule.by_day and rule.event_time is not None:
            columns[DAY] = _day(columns[rule.event_time], verdicts)
        yield pa.RecordBatch.from_pydict(columns)


def judge_texts(
    batches: Iterator[pa.RecordBatch], rule: Rule, moment: Moment, text: TextTime
) -> Iterator[pa.RecordBatch]:
    """Judge rows by an event time that is read from a text; what is not certain is `UNSURE`."""
    for batch in batches:
        times, certain = text.compute(batch)
        reasons: Any = batch.column("_reason")
        is_unsure = pc.and_not(reasons.is_null(), certain)
        place = batch.schema.get_field_index("_reason")
        marked = batch.set_column(place, "_reason", pc.if_else(is_unsure, UNSURE, reasons))
        yield from judge(iter((_with_time(marked, rule, times),)), rule, moment)


def _day(times: Any, verdicts: Any) -> Any:
    """Return the days of right rows; other rows may be of any day, and have none."""
    is_right = pc.equal(verdicts, pa.scalar("ok", verdicts.type))
    days = pc.cast(times, pa.date32(), safe=False)
    return pc.if_else(is_right, days, pa.scalar(None, pa.date32()))


def as_decoded(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Give typed rows the columns, in the order, that decoded rows have."""
    found = {name: batch.column(name) for name in columns}
    found["_reason"] = pa.nulls(batch.num_rows, pa.string())
    found["_raw"] = pa.nulls(batch.num_rows, pa.binary())
    marks = ("_reason", "_raw", "_origin", "_position")
    found |= {name: batch.column(name) for name in marks if name in batch.schema.names}
    return pa.RecordBatch.from_pydict(found)


def numbered(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Keep some columns and the verdict as a number, which Spark filters and counts faster."""
    verdict: Any = pc.index_in(batch.column("_verdict"), value_set=pa.array((*VERDICTS, BLANK)))
    kept = [*map(batch.column, columns), verdict.cast(pa.int8())]
    return pa.RecordBatch.from_arrays(kept, [*columns, "_verdict"]).filter(verdict.is_valid())


def _judge(batch: pa.RecordBatch, rule: Rule, arrived: int, bound: int | None) -> tuple[Any, Any]:
    reasons: Any = batch.column("_reason")
    malformed = reasons.is_valid()
    verdict = pc.if_else(malformed, "malformed", "ok")
    for mark in (NO_RECORD, BLANK, UNSURE):
        verdict = pc.if_else(_is_true(pc.equal(reasons, pa.scalar(mark))), mark, verdict)
    if rule.event_time is None:
        return verdict, reasons
    at: Any = batch.column(rule.event_time).cast(_MOMENT).cast(pa.int64())
    conditions: list[tuple[Any, str, Callable[[str], str]]] = [
        (at.is_null(), "malformed", lambda _: rule.null_reason),
        # Spark's watermark begins there, and silently drops what is not after it.
        (
            pc.less_equal(at, pa.scalar(0)),
            "rejected",
            lambda t: f"{rule.event_time} is {t}, which is not after 1970-01-01 00:00:00",
        ),
        (
            pc.greater(at, pa.scalar(arrived + rule.future_us)),
            "future",
            lambda t: f"{rule.event_time} is {t}, more than {rule.future} ahead of its arrival",
        ),
    ]
    if bound is not None:
        watermark = _text(bound)
        conditions.append(
            (
                pc.less(at, pa.scalar(bound)),
                "late",
                lambda t: f"{rule.event_time} is {t}, before the watermark {watermark}",
            )
        )
    undecided = pc.invert(malformed)
    for fact, name, reason in conditions:
        hit = pc.and_(_is_true(fact), undecided)
        verdict = pc.if_else(hit, name, verdict)
        reasons = _explained(reasons, hit, at, reason)
        undecided = pc.and_(undecided, pc.invert(hit))
    return verdict, reasons


def _timed(
    batch: pa.RecordBatch, rule: Rule, compute: Callable[[pa.RecordBatch], Any] | None
) -> pa.RecordBatch:
    assert rule.event_time is not None
    at = within_years(compute(batch) if compute else batch.column(rule.event_time))
    return _with_time(batch, rule, at)


def _with_time(batch: pa.RecordBatch, rule: Rule, at: Any) -> pa.RecordBatch:
    """Put the event time where it belongs: after the columns of the record."""
    assert rule.event_time is not None
    if rule.event_time in batch.schema.names:
        place = batch.schema.get_field_index(rule.event_time)
        return batch.set_column(place, rule.event_time, at)
    return batch.add_column(batch.schema.get_field_index("_reason"), rule.event_time, at)


def _explained(reasons: Any, hit: Any, at: Any, reason: Callable[[str], str]) -> Any:
    if not pc.any(hit).as_py():
        return reasons
    texts = [reason(_text(moment)) for moment in at.filter(hit).to_pylist()]
    return pc.replace_with_mask(reasons, hit, pa.array(texts, pa.string()))


def _text(microseconds: int | None) -> str:
    if microseconds is None:
        return "null"
    text = str(pa.scalar(microseconds, pa.timestamp("us")).cast(pa.string()).as_py())
    return text.rstrip("0").rstrip(".") if "." in text else text


def _is_true(fact: Any) -> Any:
    return pc.coalesce(fact, pa.scalar(False))


def _repeat(value: int, times: int, kind: Any) -> Any:
    return pa.repeat(pa.scalar(value, kind), times)
