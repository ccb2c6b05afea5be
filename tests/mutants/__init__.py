"""Faults planted one by one, to see whether a test of their room notices."""
