"""Spark's checkpoint folders, as Spark writes them: what was planned, what was committed."""

from millstream.checkpoint.log import CheckpointLog, changed_files

__all__ = ["CheckpointLog", "changed_files"]
