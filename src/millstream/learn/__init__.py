"""Models that learn from a stream, and learners whose statistics merge."""

from millstream.learn.k_means import KMeans
from millstream.learn.linear import LinearRegression, LogisticRegression
from millstream.learn.naive_bayes import NaiveBayes

__all__ = ["KMeans", "LinearRegression", "LogisticRegression", "NaiveBayes"]
