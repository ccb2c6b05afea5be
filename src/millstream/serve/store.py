"""The protocol of stores, and how refused rows are found among those that a store accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from millstream.lake.fence import Decision
from millstream.serve.shape import GONE
from millstream.serve.value import RowsRefusedError, with_null

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from millstream.lake.fence import Fence, PendingBatch
    from millstream.serve.fence import Place
    from millstream.serve.shape import Column

    Rows = Callable[[], Iterable[pa.Table]]
    """A batch, part by part, as often as it is asked for."""
    Settle = Callable[[Sequence["Refused"]], str]
    """Called with what was refused, when all is written and nothing committed; returns the note."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that a store refuses, and why in its own words."""

    rows: pa.Table
    reason: str


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of writing a batch."""

    decision: Decision
    """Whether it is applied, or skipped because the store has it already."""
    fence: Fence
    refused: tuple[Refused, ...] = ()

    @property
    def applied(self) -> bool:
        """Whether it was written now."""
        return self.decision is Decision.APPLY


class Store(Protocol):
    """One place of a store, open for one driver."""

    place: Place

    def take(self) -> Fence:
        """Shut earlier drivers out; return the fence as it is now."""
        ...

    def fence(self) -> Fence | None:
        """Look at the fence."""
        ...

    def write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        """Write a batch and its fence in one transaction, unless the batch is there."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class StoreReader(Protocol):
    """A place of a store, open for look-ups by one thread at a time."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns that were served to it, by name."""
        ...

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the row of a key; None if there is none."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def salvage(rows: pa.Table, write: Callable[[pa.Table], None]) -> list[Refused]:
    """Write rows; if some are refused, all the others.

    Args:
        rows: What to write.
        write: Writes all rows, or none and raises RowsRefusedError.
    """
    if not rows.num_rows:
        return []
    try:
        write(rows)
    except RowsRefusedError as refusal:
        if rows.num_rows == 1:
            return [Refused(rows, str(refusal))]
    else:
        return []
    half = rows.num_rows // 2
    return salvage(rows.slice(0, half), write) + salvage(rows.slice(half), write)


def split_keyless(rows: pa.Table, key: Sequence[str]) -> tuple[pa.Table, list[Refused]]:
    """Split off the rows without a key."""
    if not key:
        return rows, []
    lacking = with_null(rows, key)
    if not pc.any(lacking).as_py():
        return rows, []
    reason = f"a column of the key ({', '.join(key)}) is null"
    return rows.filter(pc.invert(lacking)), [Refused(rows.filter(lacking), reason)]


def split_deleted(rows: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    """Split the rows to keep from those to delete, if there are any."""
    if GONE not in rows.column_names:
        return rows, None
    gone, rest = rows.column(GONE), rows.drop_columns([GONE])
    return rest.filter(pc.invert(gone)), rest.filter(gone)
