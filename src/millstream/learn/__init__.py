"""Models that learn from a stream, and learners whose statistics merge."""

from millstream.learn.merging import KMeans, LinearRegression, LogisticRegression, NaiveBayes

__all__ = ["KMeans", "LinearRegression", "LogisticRegression", "NaiveBayes"]
