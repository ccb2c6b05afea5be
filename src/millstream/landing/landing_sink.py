"""The landing table of a source: each batch is kept, with its verdicts, in one commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.lake.files import count_rows
from millstream.lake.frontier import NOTHING_YET, Publication, frontier_of, moment
from millstream.lake.staging import Staged, digest_without_writing, observe, stage
from millstream.landing.decode import BENT, BLANK, NO_RECORD
from millstream.landing.idle import Idle, in_microseconds
from millstream.landing.verdict import UNSURE, Moment
from millstream.model.dataset import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import DataFrame

    from millstream.lake.delta import FencedTable
    from millstream.lake.log import Facts
    from millstream.landing.land import Landing, Work
    from millstream.model.connector import Followed

_NOT_LANDED = (NO_RECORD, BLANK)
_LEFT_TO_SPARK = 50
"""Batches whose event times Spark computes, after one that had to be staged again."""


class LandingSink:
    """The landing table of one source, open for writing."""

    def __init__(
        self,
        landing: Landing,
        table: FencedTable,
        staging: Path,
        planned_at: Callable[[int], int],
        followed: Callable[[int], Followed | None] = lambda _: None,
    ) -> None:
        self._landing, self._table, self._staging = landing, table, staging
        self._planned_at, self._followed = planned_at, followed
        self._left_to_spark = 0
        self.greatest_origin = ""
        """Of all records landed since this was opened, the greatest name of an origin."""

    @property
    def facts(self) -> Facts:
        """What is landed so far."""
        return self._table.facts

    def stage(self, raw: DataFrame, batch: int) -> Staged:
        """Parse, judge and write a batch; nothing of it is landed yet."""
        now = Moment(batch, self._planned_at(batch) * 1000, self.bound)
        staged = self._stage_without_spark(raw, now) or self._stage(raw, now)
        if staged.seen["_rows"] != staged.rows:
            raise fault(
                "LANDING_UNBALANCED",
                batch=batch,
                source=self._table.name,
                read=staged.seen["_rows"],
                landed=staged.rows,
            )
        return staged

    def _stage_without_spark(self, raw: DataFrame, now: Moment) -> Staged | None:
        """Stage a batch whose event times are certain in Arrow; return None if some are not."""
        if self._left_to_spark:
            self._left_to_spark -= 1
            return None
        work = self._landing.without_spark(raw.sparkSession, now)
        staged = self._stage(raw, now, work) if work else None
        if staged is None or not staged.only("_verdict", UNSURE):
            return staged
        self._left_to_spark = _LEFT_TO_SPARK
        return None

    def _stage(self, raw: DataFrame, now: Moment, work: Work | None = None) -> Staged:
        """Write a batch, judged by a function that needs no Spark, if there is one."""
        landing = self._landing
        counted, observation = observe(raw, {}, raw.columns)
        rows, judge = (counted, work) if work else landing.prepared(counted, now)
        if landing.source.expect.rules:
            judged = landing.judged(rows, judge)
            return stage(judged, observation, self._staging, landing.partition_by)
        return stage(rows, observation, self._staging, landing.partition_by, judge)

    def replay(self, raw: DataFrame) -> str:
        """Read a batch that is landed already, to check that it is the same."""
        return digest_without_writing(*observe(raw, {}, raw.columns))

    def commit(self, staged: Staged, batch: int, query_id: str) -> None:
        """Land a batch.

        Raises:
            LATE_ROWS: It has late rows and the source allows none.
        """
        source = self._landing.source
        landed = tuple(f for f in staged.files if f.partition["_verdict"] not in _NOT_LANDED)
        counts = {v: count_rows(staged.only("_verdict", v)) for v in (*VERDICTS, BLANK)}
        if source.late == "fail" and counts["late"]:
            raise fault(
                "LATE_ROWS", at=source.at, batch=batch, source=source.name, rows=counts["late"]
            )
        followed, greatest = self._followed(batch), self._greatest(staged)
        facts = replace(
            self.facts,
            query_id=query_id,
            batch=batch,
            rows=count_rows(landed),
            digest=staged.digest,
            changed=batch if landed else self.facts.changed,
            greatest_event_time=greatest,
            inputs=followed.position if followed else {},
            quiet_since=None,
            mode="append",
        ).publishing(self._published(greatest, followed))
        read = staged.seen["_rows"] - count_rows(staged.only("_verdict", NO_RECORD))
        if self._landing.is_lenient:
            counts[BENT.name] = sum(file.rows - file.nulls(BENT.name) for file in landed)
        self._table.append(landed, facts.plus({"input": read, **counts}))
        origins = (file.greatest("_origin") or "" for file in landed)
        self.greatest_origin = max(self.greatest_origin, *origins, "")

    def pass_time(self, quiet_since: int, now: int) -> None:
        """Commit a later frontier, if the source has been quiet for its idle time."""
        idle = Idle.of(self._landing.source)
        reached = idle.reached(quiet_since, now) if idle else None
        if idle is None or reached is None or reached <= (self.facts.frontier or NOTHING_YET):
            return
        published = Publication(reached, self._landing.source.event_time, idle.delay)
        self._table.publish(replace(self.facts.publishing(published), quiet_since=quiet_since))

    @property
    def bound(self) -> int | None:
        """The watermark for the next batch; never before the frontier already published."""
        bound, frontier = self._landing.bound(self.facts.greatest_event_time), self.facts.frontier
        return bound if bound is None or frontier is None else max(bound, frontier)

    def _published(self, greatest: int | None, followed: Followed | None) -> Publication:
        """Return up to when the landing is complete; for a followed table, its own frontier.

        Raises:
            FRONTIER_PASSED: Rows that are still to come there would be late here.
        """
        source, bound = self._landing.source, self._landing.bound(greatest)
        delay = in_microseconds(source.watermark) if source.watermark else None
        if followed is None or source.event_time not in (None, followed.event_time):
            unknown = None if source.event_time is None else NOTHING_YET
            return Publication(unknown if bound is None else bound, source.event_time, delay)
        if bound is not None and (frontier := moment(followed.frontier)):
            self._refuse_if_passed(moment(bound), frontier)
        return Publication(followed.frontier, source.event_time, delay)

    def _refuse_if_passed(self, watermark: datetime | None, frontier: datetime) -> None:
        if watermark is not None and watermark > frontier:
            source = self._landing.source
            raise fault(
                "FRONTIER_PASSED",
                at=source.at,
                source=source.name,
                watermark=str(watermark),
                frontier=str(frontier),
            )

    def _greatest(self, staged: Staged) -> int | None:
        column = self._landing.source.event_time
        moments = [self.facts.greatest_event_time]
        if column is not None:
            greatest = (f.greatest(column) for f in staged.only("_verdict", "ok"))
            moments += [frontier_of(moment) for moment in greatest if moment is not None]
        return max((m for m in moments if m is not None), default=None)
