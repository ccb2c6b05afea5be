"""What happened: typed events, what Spark reports on each batch, and the history of both."""

from millstream.observe.event import Event
from millstream.observe.progress import Progress

__all__ = ["Event", "Progress"]
