"""The terminal that an app runs in."""
