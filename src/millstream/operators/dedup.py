"""Rows that arrive more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.operators.fault import option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


def dedup(
    rows: DataFrame,
    keys: str | Sequence[str],
    *,
    within: str | None = None,
    event_time: str | None = None,
    error: float | None = None,
    remembers: int = 1_000_000,
) -> DataFrame:
    """Keep one row per key, in a stream as in a batch.

    Rows with equal keys count as the same event. With the event time among the keys, a
    stream forgets a key when the watermark passes it; without, it remembers every key for ever.

    With `within`, a row is left out if the last row of its key that is kept is at most so much
    earlier; of rows at the same instant the first by their columns, written as JSON, is kept. In a
    stream a row is emitted when the watermark has passed it, because an earlier one may still
    arrive, and a key is forgotten after that time.

    With `error`, keys are remembered in Bloom filters: some 5 bytes of state for each of
    `remembers`, however long keys are and however many come. A row whose key was not seen is left
    out as if it was, with no more than this chance. At least the last `remembers` keys are known,
    and one that comes again is the last; a key that has been forgotten is kept once more.

    Args:
        rows: In a stream with `within`, with a watermark.
        keys: Columns that are equal if rows are of the same event.
        within: How much later a row can be and still be of the same event.
        event_time: The column, if the rows have several of type TIMESTAMP.
        error: Which share of first rows may be left out, for instance 0.001.
        remembers: With `error`, how many keys at least; never less than 1,000.

    Raises:
        DeclarationError: A key, the event time or its watermark is missing.
    """
    at = location_of_caller()
    from millstream.operators.columns import check_columns, names_of

    names = names_of(keys)
    if not names:
        why, instead = "one row of all would be kept", 'name columns that tell events apart: ["id"]'
        raise option_fault("ms.dedup", "keys", keys, why=why, instead=instead, at=at)
    check_columns(rows, names, call="ms.dedup", option="keys", at=at)
    if error is not None:
        if within is not None:
            why, instead = "it has within as well", "leave out one of them"
            raise option_fault("ms.dedup", "error", error, why=why, instead=instead, at=at)
        from millstream.operators.bloom import once_nearly

        return once_nearly(rows, names, error, remembers, at)
    if within is None:
        return rows.dropDuplicates(list(names))
    from millstream.operators.dedup_within import once_within

    return once_within(rows, names, within, event_time, at)
