"""DataFrame in, DataFrame out: what users call inside their functions."""

from millstream.operators import sampling, sketch
from millstream.operators.add_columns import add_columns
from millstream.operators.dedup import dedup
from millstream.operators.joins.as_of import join_as_of
from millstream.operators.joins.within import join_within
from millstream.operators.patterns.match import absent, match
from millstream.operators.patterns.pattern import pattern
from millstream.operators.reference import reference
from millstream.operators.salted import salted
from millstream.operators.state.stateful import stateful
from millstream.operators.state.timer import Timer
from millstream.operators.top import top_k

__all__ = [
    "Timer",
    "absent",
    "add_columns",
    "dedup",
    "join_as_of",
    "join_within",
    "match",
    "pattern",
    "reference",
    "salted",
    "sampling",
    "sketch",
    "stateful",
    "top_k",
]
