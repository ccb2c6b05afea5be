"""Patterns: what happened in which order by event time, and what did not."""
