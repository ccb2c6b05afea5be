"""Rows handed over by the program itself."""
