"""The verdict on every row of a batch, given in Arrow where the rows are decoded.

What changes from batch to batch (the watermark, the moment of arrival) is data here; in a Spark
expression it would be a literal, and Spark would compile new code for every batch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode import NO_RECORD
from millstream.model.dataset import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_MOMENT = pa.timestamp("us", tz="UTC")
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """How rows of one source are judged."""

    event_time: str | None
    future: str
    """As the user wrote it, for the reason."""
    future_us: int


@dataclass(frozen=True, slots=True)
class Moment:
    """What a batch knows of time, in microseconds since 1970."""

    batch: int = -1
    arrived: int | None = None
    """When the batch was planned; for a live source, the moment it is looked at."""
    bound: int | None = None
    """The watermark: rows before it are late."""


def judge(
    batches: Iterator[pa.RecordBatch], rule: Rule, moment: Moment
) -> Iterator[pa.RecordBatch]:
    """Add arrival, batch and verdict to decoded rows, and the reason where it is not ok."""
    for batch in batches:
        arrived = moment.arrived if moment.arrived is not None else time.time_ns() // 1000
        verdicts, reasons = _judge(batch, rule, arrived, moment.bound)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns["_reason"] = reasons
        columns["_arrived_at"] = _repeat(arrived, batch.num_rows, _MOMENT)
        columns["_batch"] = _repeat(moment.batch, batch.num_rows, pa.int64())
        columns["_verdict"] = verdicts
        yield pa.RecordBatch.from_pydict(columns)


def unjudged(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Give rows that came typed the columns, in the order, that decoding gives to others."""
    found = {name: batch.column(name) for name in columns}
    found["_reason"] = pa.nulls(batch.num_rows, pa.string())
    found["_raw"] = pa.nulls(batch.num_rows, pa.binary())
    found |= {name: batch.column(name) for name in ("_origin", "_position")}
    return pa.RecordBatch.from_pydict(found)


def numbered(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Keep some columns and the verdict as a number, which Spark filters and counts faster."""
    verdict: Any = pc.index_in(batch.column("_verdict"), value_set=pa.array(VERDICTS))
    kept = [*map(batch.column, columns), verdict.cast(pa.int8())]
    return pa.RecordBatch.from_arrays(kept, [*columns, "_verdict"]).filter(verdict.is_valid())


def _judge(batch: pa.RecordBatch, rule: Rule, arrived: int, bound: int | None) -> tuple[Any, Any]:
    reasons: Any = batch.column("_reason")
    malformed = reasons.is_valid()
    verdict = pc.if_else(malformed, "malformed", "ok")
    verdict = pc.if_else(_is_true(pc.equal(reasons, pa.scalar(NO_RECORD))), NO_RECORD, verdict)
    if rule.event_time is None:
        return verdict, reasons
    at: Any = batch.column(rule.event_time).cast(_MOMENT).cast(pa.int64())
    told: list[tuple[Any, str, Callable[[str], str]]] = [
        (at.is_null(), "malformed", lambda _: f"event time {rule.event_time!r} is null"),
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
        told.append(
            (
                pc.less(at, pa.scalar(bound)),
                "late",
                lambda t: f"{rule.event_time} is {t}, before the watermark {watermark}",
            )
        )
    undecided = pc.invert(malformed)
    for fact, name, reason in told:
        hit = pc.and_(_is_true(fact), undecided)
        verdict = pc.if_else(hit, name, verdict)
        reasons = _explained(reasons, hit, at, reason)
        undecided = pc.and_(undecided, pc.invert(hit))
    return verdict, reasons


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
