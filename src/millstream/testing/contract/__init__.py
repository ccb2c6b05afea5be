"""The contract of sources and sinks: what one survives, and hence what it may promise.

Anyone runs it against a source or sink of their own; ours pass it too.
"""

from millstream.testing.contract.function import check_function
from millstream.testing.contract.report import AT_LEAST_ONCE, EXACTLY_ONCE, NOTHING, Report, Trial
from millstream.testing.contract.sink import DrivenStore, check_sink
from millstream.testing.contract.source import check_source

__all__ = [
    "AT_LEAST_ONCE",
    "EXACTLY_ONCE",
    "NOTHING",
    "DrivenStore",
    "Report",
    "Trial",
    "check_function",
    "check_sink",
    "check_source",
]
