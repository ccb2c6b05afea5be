"""Stores that are made of what the lake knows."""
