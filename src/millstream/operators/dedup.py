"""Rows that arrive more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


def dedup(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Keep one row per key, in a stream as in a batch.

    Rows with equal keys are taken to be the same event. With the event time among the keys, a
    stream forgets a key when the watermark passes it; without, it remembers every key for ever.
    """
    return rows.dropDuplicates(list(keys))
