"""DataFrame in, DataFrame out: what users call inside their functions."""

from millstream.operators.dedup import dedup
from millstream.operators.patterns.match import absent, match
from millstream.operators.patterns.pattern import pattern

__all__ = ["absent", "dedup", "match", "pattern"]
