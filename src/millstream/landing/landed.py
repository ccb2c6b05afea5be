"""What a landing holds, and where its rows came from, read without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalake import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

_COLUMNS = ["_batch", "_origin", "_position", "_arrived_at"]


@dataclass(slots=True)
class LandedBatch:
    """One batch: where each of its rows came from."""

    planned_at_ms: int
    origins: dict[str, int | None] = field(default_factory=dict)
    """File, or topic and partition -> the greatest position; None where there is none."""


def landed_batches(table: Path) -> Mapping[int, LandedBatch]:
    """Read where all rows came from, by batch; a batch that landed no row is not among them."""
    import pyarrow as pa

    batches: dict[int, LandedBatch] = {}
    rows = DeltaTable(str(table)).to_pyarrow_dataset().scanner(columns=_COLUMNS)
    for chunk in rows.to_batches():
        grouped = pa.Table.from_batches([chunk]).group_by(["_batch", "_origin"])
        found = grouped.aggregate([("_position", "max"), ("_arrived_at", "min")])
        for row in found.to_pylist():
            planned_at_ms = round(row["_arrived_at_min"].timestamp() * 1000)
            batch = batches.setdefault(row["_batch"], LandedBatch(planned_at_ms))
            before, position = batch.origins.get(row["_origin"]), row["_position_max"]
            known = [n for n in (before, position) if n is not None]
            batch.origins[row["_origin"]] = max(known, default=None)
    return batches


def landed_rows(table: Path, columns: Sequence[str], *, most: int, right: bool) -> pa.Table:
    """Read some rows that are ok, or some that are not."""
    import pyarrow.compute as pc

    verdict = pc.field("_verdict")
    wanted = verdict == "ok" if right else verdict != "ok"
    dataset = DeltaTable(str(table)).to_pyarrow_dataset()
    return dataset.head(most, columns=list(columns), filter=wanted)
