"""What happened: typed events and what Spark said of each batch."""

from millstream.observe.event import Event
from millstream.observe.progress import Progress

__all__ = ["Event", "Progress"]
