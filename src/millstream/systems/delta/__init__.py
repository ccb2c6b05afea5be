"""Delta tables outside the home."""
