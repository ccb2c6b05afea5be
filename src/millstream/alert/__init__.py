"""Alerts on their way: rows of an outbox become notices, and notices are told to destinations."""
