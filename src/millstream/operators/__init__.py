"""DataFrame in, DataFrame out: what users call inside their functions."""

from millstream.operators.dedup import dedup

__all__ = ["dedup"]
