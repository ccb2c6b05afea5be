"""Spark's checkpoint folders, as Spark writes them: what was planned, what was committed."""

from millstream.checkpoint.file_log import changed_files, files_of_batch, forget_files
from millstream.checkpoint.inspect import Checkpoint, Finding, TableProgress
from millstream.checkpoint.log import WAITING, CheckpointLog

__all__ = [
    "WAITING",
    "Checkpoint",
    "CheckpointLog",
    "Finding",
    "TableProgress",
    "changed_files",
    "files_of_batch",
    "forget_files",
]
