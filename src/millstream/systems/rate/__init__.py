"""Spark's counter."""
