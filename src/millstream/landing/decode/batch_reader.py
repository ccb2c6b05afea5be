"""The protocol of readers that read a batch of records at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.landing.decode.column import Column


@runtime_checkable
class BatchReader(Protocol):
    """Reads the records of a batch into the columns of the schema, in order."""

    @property
    def is_text(self) -> bool:
        """Whether records are UTF-8; others are null in the batch."""

    def read_batch(self, records: Column) -> tuple[Sequence[Column], dict[int, str]]:
        """Return the columns, and the reason of each malformed record by its row.

        A null record, or one that is malformed, is null in all columns.
        """
