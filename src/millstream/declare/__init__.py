"""How users say it: plain functions and SQL become frozen datasets."""
