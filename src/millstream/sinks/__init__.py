"""Serving stores: each writes a batch exactly once, by one protocol (`fence`)."""
