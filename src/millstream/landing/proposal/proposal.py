"""What is proposed for some records, and how many of them it fits."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.model.codec import CsvOptions

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """How records can be read, and how many of the sampled ones it fits."""

    format: str
    columns: Mapping[str, str]
    """Column -> its type, as in a schema."""
    sampled: int
    fits: int
    document: bool = False
    pattern: str = ""
    csv: CsvOptions | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    event_time: str | Mapping[str, str] | None = None
    watermark: str | None = None
    keys: tuple[str, ...] = ()
    """Columns whose values are all there and all different."""
    reasons: tuple[str, ...] = ()
    """Why records do not fit, the most frequent first."""
    notes: tuple[str, ...] = ()
    """What cannot be known from the sample."""

    @property
    def schema(self) -> str:
        """The columns as DDL."""
        return ", ".join(f"{quoted(name)} {kind}" for name, kind in self.columns.items())


def quoted(name: str) -> str:
    """Write a name as DDL has it."""
    return name if _NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def renamed(names: Iterable[str]) -> dict[str, str]:
    """Give fields that are no plain names a column that is one, and none the name of another."""
    found = dict[str, str]()
    taken: set[str] = set()
    for name in names:
        column = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "field"
        column = f"c_{column}" if column[0].isdigit() else column
        column = name if _NAME.fullmatch(name) and name[0] != "_" else column
        while column.lower() in taken:
            column += "_"
        taken.add(column.lower())
        if column != name:
            found[name] = column
    return found
