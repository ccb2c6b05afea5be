"""Spark's checkpoint folders, as Spark writes them: what was planned, what was committed."""

from millstream.checkpoint.inspect import Checkpoint, Finding, Held
from millstream.checkpoint.log import WAITING, CheckpointLog, changed_files

__all__ = ["WAITING", "Checkpoint", "CheckpointLog", "Finding", "Held", "changed_files"]
