"""Which rows belong to somebody: columns that equal given values, in any file of a home."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.lake.rows import kept_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_PART = re.compile(r"\s*`?(\w+)`?\s*=\s*(?:'((?:[^']|'')*)'|([-+\w.:]+))\s*", re.DOTALL)
_AND = re.compile(r"and\b", re.IGNORECASE)
_RAW = "_raw"


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows whose columns equal values, each as text."""

    values: Mapping[str, str]

    @staticmethod
    def parse(text: str) -> OwnRows:
        """Read a condition such as `user = 'ann' AND shop = 3`.

        Raises:
            FORGET_CONDITION: It is none of columns that equal values.
        """
        values: dict[str, str] = {}
        rest = text
        while part := _PART.match(rest):
            name, quoted, plain = part.groups()
            values[name] = plain if quoted is None else quoted.replace("''", "'")
            rest = rest[part.end() :]
            if not (more := _AND.match(rest)):
                break
            rest = rest[more.end() :]
        if rest.strip() or not values or "" in values.values():
            raise fault("FORGET_CONDITION", condition=text)
        return OwnRows(values)

    def fits(self, columns: Mapping[str, Any]) -> bool:
        """Return whether a row of Python values is one of these."""
        return all(
            name in columns and str(columns[name]) == value for name, value in self.values.items()
        )

    def others(self, rows: pa.RecordBatch, partition: Mapping[str, str | None]) -> pa.RecordBatch:
        """Leave these rows out; of records that could not be parsed, those that have the values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        compute: Any = pc
        nothing = pa.array([False] * rows.num_rows)
        own: Any = pa.array([True] * rows.num_rows)
        for name, value in self.values.items():
            if name in partition:
                equal: Any = pa.array([partition[name] == value] * rows.num_rows)
            elif name in rows.schema.names:
                equal = _equal(rows.column(name), value)
            else:
                equal = nothing
            own = compute.and_(own, compute.fill_null(equal, False))  # noqa: FBT003
        if _RAW in rows.schema.names:
            own = compute.or_(own, self._in_raw(rows.column(_RAW)))
        return kept_rows(rows, [not is_own for is_own in own.to_pylist()])

    def _in_raw(self, raw: Any) -> Any:
        import pyarrow as pa

        whole = (rb"(?<!\w)" + re.escape(v.encode()) + rb"(?!\w)" for v in self.values.values())
        wanted = [re.compile(each) for each in whole]
        texts = (text.as_py() for text in raw)
        return pa.array(
            [text is not None and all(w.search(text) for w in wanted) for text in texts]
        )


def _equal(column: Any, value: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    try:
        return compute.equal(column, pa.scalar(value).cast(column.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # What is no value of the type equals none.
        return pa.array([False] * len(column))
