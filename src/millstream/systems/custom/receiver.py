"""A user function that receives records, from any system."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.systems.record_source import ReceiverSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import StructType

    from millstream.landing.inbox import Inbox


@dataclass(frozen=True, slots=True)
class Receiver(ReceiverSource):
    """Records that a function hands over, such as from a device or a protocol of your own.

    The function is called in a thread of the driver, and again whenever it raises, until the app
    stops. `inbox.put(record)` returns when the record is landed: acknowledge it then to the
    sender, and nothing can be lost. `inbox.offer(record)` does not wait.
    """

    receive: Callable[[Inbox], None] = field(compare=False, repr=False)
    format: str = "json"
    schema: str | StructType = "value STRING"
