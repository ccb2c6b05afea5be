"""A program as it is written down: what `start` takes from a context."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from millstream.declare.notebook import place_of
from millstream.dstream.store import StoreOutput
from millstream.errors import Location
from millstream.model.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from pyspark import RDD
    from pyspark.storagelevel import StorageLevel

    from millstream.dstream.node import Node, SourceNode

_LIBRARIES = (str(Path(__file__).parent), str(Path(pyspark.__file__).parent))


class OutputError(Exception):
    """An output that is no part of the program failed: its cause is raised as it is."""


@dataclass(frozen=True)
class ProgramOutput:
    """What is done with the RDD of a node in every batch."""

    node: Node
    action: Callable[[datetime, RDD[Any]], object] | StoreOutput
    name: str
    at: Location

    def guarantee(self, *, is_durable: bool) -> str:
        """How often it is done for a batch, if the program has a checkpoint directory or not."""
        if not is_durable:
            return "lost with the driver: no checkpoint directory"
        if isinstance(self.action, StoreOutput):
            return self.action.sink.guarantee(Trigger("default"))
        return "at least once, under one batch time"


@dataclass(frozen=True)
class StreamProgram:
    """Inputs, outputs, and how long RDDs are kept."""

    interval_ms: int
    sources: tuple[SourceNode, ...]
    outputs: tuple[ProgramOutput, ...]
    states: tuple[str, ...]
    """The operations that keep state, in the order of the program."""
    remembered_ms: int
    levels: Mapping[Node, StorageLevel]
    listeners: list[Any]

    @property
    def identity(self) -> list[str]:
        """What must stay the same for the home of an earlier run to fit."""
        sources = [type(node.source).__name__ for node in self.sources]
        return [f"batches of {self.interval_ms} ms", *sources, *self.states]


def here() -> Location:
    """Return the line of the user's program that is running."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    return Location(place_of(frame.f_code.co_filename), frame.f_lineno)
