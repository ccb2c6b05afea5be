"""The kit to test applications with."""
