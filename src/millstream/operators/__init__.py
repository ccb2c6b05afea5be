"""DataFrame in, DataFrame out: what users call inside their functions."""

from millstream.operators.dedup import dedup
from millstream.operators.patterns.match import absent, match
from millstream.operators.patterns.pattern import pattern
from millstream.operators.state.stateful import stateful
from millstream.operators.state.timer import Timer

__all__ = ["Timer", "absent", "dedup", "match", "pattern", "stateful"]
