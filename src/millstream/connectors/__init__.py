"""The outside world: one file per system."""
