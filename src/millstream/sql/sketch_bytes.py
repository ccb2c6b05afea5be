"""Whether bytes can be a sketch: DataSketches reads and writes where their numbers say.

A query may pass any bytes, and its process must survive them.
"""

from __future__ import annotations

import math
import struct
from itertools import pairwise

_KLL_FULL, _KLL_LEVELS_AT = 5, 20
"""How many words come first in a KLL sketch of several values, and where its levels start."""
_MOST = 2**63
"""What Spark counts to. DataSketches never ends a merge of more values."""
_THETA_PLAIN, _THETA_PACKED = 3, 4
_THETA_EMPTY = 4
_ITEMS_MOST_LG = 21
"""Of the table of items: Spark tracks at most a million."""


def check_kll(data: bytes) -> None:
    """Check that the levels of a KLL sketch lie in its bytes, and that its values have an order.

    Raises:
        ValueError: They are no KLL sketch.
    """
    if len(data) < _KLL_LEVELS_AT or data[0] != _KLL_FULL or data[3] & 1:
        return
    (total,), count = struct.unpack_from("<Q", data, 8), data[18]
    first = _KLL_LEVELS_AT + 4 * count
    values, rest = divmod(len(data) - first, 8)
    if not count or values < 2 or rest:
        raise _no_sketch("KLL")
    starts = struct.unpack_from(f"<{count}I", data, _KLL_LEVELS_AT)
    # Two of the values are the least and the greatest.
    sizes = [end - start for start, end in pairwise((*starts, starts[0] + values - 2))]
    weighed = sum(size << level for level, size in enumerate(sizes))
    if min(sizes) < 0 or weighed != total:
        raise _no_sketch("KLL")
    if any(map(math.isnan, struct.unpack_from(f"<{values}d", data, first))):
        raise _no_sketch("KLL")


def check_kll_total(total: int) -> None:
    """Check that so many values can be merged.

    Raises:
        ValueError: They are more than Spark counts.
    """
    if total >= _MOST:
        raise _no_sketch("KLL")


def check_theta(data: bytes) -> None:
    """Check that the hashes of a theta sketch lie in its bytes.

    Raises:
        ValueError: They are no theta sketch of Spark.
    """
    if len(data) < 8 or data[1] not in (_THETA_PLAIN, _THETA_PACKED):
        raise _no_sketch("theta")
    if data[1] == _THETA_PACKED:
        bits, wide, first = data[3], data[4], 16 if data[0] > 1 else 8
        count = int.from_bytes(data[first : first + wide], "little")
        is_whole = 0 < bits < 64 and wide <= 4 and first + wide + bits * count / 8 <= len(data)
    else:
        is_whole = bool(data[5] & _THETA_EMPTY) or len(data) >= 16
    if not is_whole:
        raise _no_sketch("theta")


def check_items(data: bytes) -> None:
    """Check that a sketch of frequent items asks for no larger table than Spark's.

    Raises:
        ValueError: It does.
    """
    if len(data) < 8 or data[3] > _ITEMS_MOST_LG:
        raise _no_sketch("approx_top_k")


def _no_sketch(kind: str) -> ValueError:
    return ValueError(f"these bytes are no {kind} sketch")
