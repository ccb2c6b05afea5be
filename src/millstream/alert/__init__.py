"""Alert delivery: rows of an outbox become notices, and notices are sent to destinations."""
