"""Every error a user can meet: what is wrong, where, and how to fix it.

    MillstreamError
    ├── DeclarationError    the app is wrong             exit 1
    │   └── UserCodeError   a function of the app raised exit 1
    ├── CommandError        the command is wrong         exit 2
    ├── ClusterError        Spark, a broker or storage   exit 3
    └── FindingError        a proof found a difference   exit 1

An error is a page, `pages/CODE.md`, and `fault("CODE", …)` makes it. The other classes are those
that code catches. Codes are stable, wording is not.
"""

from millstream.errors.error import (
    CheckpointDamagedError,
    ClusterError,
    CommandError,
    CrashNotReachedError,
    DeclarationError,
    FindingError,
    InboxClosedError,
    MillstreamError,
    NotDeterministicError,
    OvertakenError,
    SchemaError,
    StateChangedError,
    StoreAheadError,
    StoreFailedError,
    StoreRestoredError,
    StoreUnreachableError,
    UserCodeError,
    fault,
    raise_faults,
)
from millstream.errors.location import Location, cell_name, relative
from millstream.errors.secret import conceal, concealed
from millstream.errors.words import closest, listed

__all__ = [
    "CheckpointDamagedError",
    "ClusterError",
    "CommandError",
    "CrashNotReachedError",
    "DeclarationError",
    "FindingError",
    "InboxClosedError",
    "Location",
    "MillstreamError",
    "NotDeterministicError",
    "OvertakenError",
    "SchemaError",
    "StateChangedError",
    "StoreAheadError",
    "StoreFailedError",
    "StoreRestoredError",
    "StoreUnreachableError",
    "UserCodeError",
    "cell_name",
    "closest",
    "conceal",
    "concealed",
    "fault",
    "listed",
    "raise_faults",
    "relative",
]
