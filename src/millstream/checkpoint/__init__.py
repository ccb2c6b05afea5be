"""Spark's checkpoint folders, as Spark writes them: what was planned, what was committed."""

from millstream.checkpoint.inspect import Checkpoint, Finding, Held
from millstream.checkpoint.log import CheckpointLog, changed_files

__all__ = ["Checkpoint", "CheckpointLog", "Finding", "Held", "changed_files"]
