"""A query of a driver, as far as maintenance has to know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from millstream.plan import Query


class MaintainedQuery(Protocol):
    """A query whose tables are maintained beside its batches."""

    @property
    def query(self) -> Query:
        """What it computes."""
        ...

    @property
    def running(self) -> object:
        """What runs it."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether it will do nothing more."""
        ...


@runtime_checkable
class Pausable(Protocol):
    """Something that runs a query and can hold it between two batches."""

    def paused(self) -> AbstractContextManager[None]:
        """Let the running batch finish, and no other begin."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """Something that runs a query and lets others commit between two batches."""

    def before_next_batch(self, act: Callable[[], bool]) -> bool:
        """Wait for the running batch, and do something before the next one begins."""
        ...
