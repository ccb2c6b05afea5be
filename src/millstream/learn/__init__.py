"""Models that learn from a stream, and scoring with them."""

from millstream.learn.score import score

__all__ = ["score"]
