"""Checkpoints mended: the smallest remedy that leaves no row lost or repeated."""
