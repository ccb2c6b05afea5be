"""TCP servers."""
