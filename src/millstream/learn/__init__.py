"""Models that learn from a stream, scoring with them, and learners whose statistics merge."""

from millstream.learn.merging import KMeans, LinearRegression, LogisticRegression, NaiveBayes
from millstream.learn.score import score

__all__ = ["KMeans", "LinearRegression", "LogisticRegression", "NaiveBayes", "score"]
