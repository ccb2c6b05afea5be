"""What functions with state keep: which there are, and the state of a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.build.states import read_state
from millstream.errors import fault
from millstream.lake.kept_states import described_states
from millstream.model.state import KeptState
from millstream.views.json_text import AnswerView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from millstream.lake.home import Home


@dataclass(frozen=True, slots=True)
class KeptView:
    """A function with state."""

    name: str
    dataset: str
    """The query that calls it."""
    key: tuple[str, ...]
    state: tuple[str, ...]

    @staticmethod
    def all_of(home: Home) -> tuple[KeptView, ...]:
        """Show the functions that have run."""
        return tuple(
            KeptView(
                kept.name,
                query,
                tuple(field.name for field in kept.key.fields),
                tuple(field.name for field in kept.state.fields),
            )
            for query, kept in described_states(home)
            if isinstance(kept, KeptState)
        )


def state_of_key(
    spark: SparkSession, home: Home, name: str, key: Mapping[str, str], *, most: int
) -> AnswerView:
    """Read what a function keeps of a key, or of some keys.

    Args:
        spark: A session.
        home: Where the app is deployed.
        name: The function, or `query.function`.
        key: Columns of the key, each with its value as text.
        most: How many rows to return.

    Raises:
        UNKNOWN_STATE: Nothing by this name keeps state.
        UNKNOWN_COLUMN: The key has no such column.
    """
    from pyspark.sql import functions as F

    found = read_state(spark, home, name)
    for column, text in key.items():
        if column not in found.columns:
            known = ", ".join(found.columns)
            raise fault("UNKNOWN_COLUMN", name=column, nearest="", known=known)
        found = found.where(F.col(f"`{column}`").cast("string") == F.lit(text))
    rows = [tuple(row) for row in found.limit(most).collect()]
    return AnswerView(tuple(found.columns), rows)
