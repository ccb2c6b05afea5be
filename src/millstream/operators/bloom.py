"""Keys that have probably been seen: Bloom filters, in state of a fixed size.

Keys are spread over slices. A slice has two filters: one that is being filled, and the one before.
When the first is full it becomes the one before, whose keys are forgotten.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import timedelta
from hashlib import shake_128
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from millstream.model.state import KeptOperator
from millstream.operators.build_context import Hold, notes
from millstream.operators.columns import typed, types_of
from millstream.operators.fault import option_fault
from millstream.operators.state.buckets import KEY, Keeping, run_keyed
from millstream.operators.state.parts import TurnResult
from millstream.operators.state.row_text import as_key, as_text, check_kept_types, from_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from millstream.errors import Location

_CALL = "ms.dedup"
_ANSWERS = StructType([StructField("row", StringType())])
_IN_SLICE = 1000
"""How many keys a slice has on average: so many that they are spread evenly, in few bytes."""
_MORE = 160
"""How many more a slice may have: five times its standard deviation."""
_LEAST_ERROR = 1e-9
_MOST = 10**9


class _Filters(msgspec.Struct, array_like=True):
    """What is known of a slice."""

    count: int
    """How many keys the filter that is being filled has."""
    new: bytes
    old: bytes


_FILTERS = msgspec.msgpack.Decoder(_Filters)


@dataclass(frozen=True)
class SeenKeys:
    """Returns the rows of a slice whose key has not been seen."""

    capacity: int
    """How many keys a filter takes."""
    bits: int
    """Of a filter."""
    hashes: int
    """How many bits of a filter a key sets."""

    @staticmethod
    def of(error: float) -> SeenKeys:
        """Choose filters, of which both together are wrong for no more than a share of keys.

        >>> SeenKeys.of(0.001)
        SeenKeys(capacity=1160, bits=18352, hashes=11)
        """
        each, capacity = error / 2, _IN_SLICE + _MORE
        bits = 8 * math.ceil(capacity * -math.log(each) / math.log(2) ** 2 / 8)
        return SeenKeys(capacity, bits, max(1, round(-math.log2(each))))

    def turn(
        self,
        key: str,  # noqa: ARG002
        packed: bytes | None,
        rows: Sequence[tuple[Any, ...]],
        frontier_us: float,  # noqa: ARG002
    ) -> TurnResult:
        """Take rows, two hashes of their keys and text; return those of keys not seen.

        >>> seen = SeenKeys.of(0.001)
        >>> first = seen.turn("0", None, [(1, 2, "a"), (1, 2, "a")], 0)
        >>> first.answers
        [('a',)]
        >>> seen.turn("0", first.packed, [(1, 2, "a"), (3, 4, "b")], 0).answers
        [('b',)]
        """
        size = self.bits // 8
        if packed is not None:
            filters = _FILTERS.decode(packed)
            count, new, old = filters.count, bytearray(filters.new), filters.old
        else:
            count, new, old = 0, bytearray(size), b""
        answers = list[tuple[Any, ...]]()
        # Sorted: a batch that is computed again keeps the same rows.
        for one, other, text in sorted(rows):
            places = [*self._places(one, other)]
            if _has(new, places):
                continue
            is_known = bool(old) and _has(old, places)
            if count >= self.capacity:
                count, new, old = 0, bytearray(size), bytes(new)
            for at in places:
                new[at >> 3] |= 1 << (at & 7)
            count += 1
            if not is_known:
                answers.append((text,))
        filled = _Filters(count, bytes(new), old)
        return TurnResult(msgspec.msgpack.encode(filled), None, answers)

    def _places(self, one: int, other: int) -> Iterator[int]:
        # Each place is a hash of its own: sums of two hashes meet too often in few bits.
        drawn = shake_128(struct.pack("<qq", one, other)).digest(8 * self.hashes)
        return (at % self.bits for at in struct.unpack(f"<{self.hashes}Q", drawn))


def _has(held: bytes | bytearray, places: Sequence[int]) -> bool:
    return all(held[at >> 3] >> (at & 7) & 1 for at in places)


def once_nearly(
    rows: DataFrame, keys: Sequence[str], error: object, remembers: object, at: Location
) -> DataFrame:
    """Keep one row per key, as far as a Bloom filter knows.

    Raises:
        DeclarationError: The error is not a share, or the number of keys no number.
    """
    is_number = isinstance(error, int | float) and not isinstance(error, bool)
    if not is_number or not _LEAST_ERROR <= float(str(error)) < 1:
        why, instead = "not a share of rows", "say a share below 1: error=0.001 is one of 1000"
        raise option_fault(_CALL, "error", error, why=why, instead=instead, at=at)
    if isinstance(remembers, bool) or not isinstance(remembers, int) or not 1 <= remembers <= _MOST:
        why, instead = "not a number of keys", f"say a whole number from 1 to {_MOST}"
        raise option_fault(_CALL, "remembers", remembers, why=why, instead=instead, at=at)
    check_kept_types(rows, rows.columns, call=_CALL, at=at)
    slices = math.ceil(remembers / _IN_SLICE)
    seen = SeenKeys.of(float(str(error)))
    text = as_key(rows, keys)
    hashed = rows.select(
        F.xxhash64(F.lit(0), text).alias("one"),
        F.xxhash64(F.lit(1), text).alias("other"),
        as_text(rows.columns).alias("row"),
    )
    place = F.pmod(F.xxhash64(F.lit(2), "one"), F.lit(slices)).cast("string")
    sliced = hashed.select(place.alias(KEY), "one", "other", "row")
    if rows.isStreaming:
        facts = {"keys": typed(rows, keys), "error": f"{error}", "remembers": f"{remembers}"}
        notes().states.append(KeptOperator(_CALL, facts, types_of(rows, "the rows"), at))
        notes().holds.append(Hold(timedelta()))
    kept = run_keyed(sliced, seen, _ANSWERS, Keeping("seen", clock="None"))
    return kept.select(from_text("row", rows, rows.columns).alias("row")).select("row.*")
