"""Joins by event time: two streams within a time, and the latest row as of an event."""
