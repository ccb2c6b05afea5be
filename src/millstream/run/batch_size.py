"""The size of the next batch, from the time that the last ones took."""

from __future__ import annotations

from dataclasses import dataclass, replace

_NEAR = (0.75, 1.25)
"""A batch that took about its target leaves the size as it is: times vary by themselves."""
_FULL = 0.8
"""From which share of the limit on a batch was as large as it was allowed to be."""
_GROWTH = 16
_TELLING = 0.1
"""Of a batch that took less than this share of the target, most was the work of any batch."""
_LEAST_SHARE = 0.1
"""A batch may take this share of its target in any case, however slow its readers are."""


@dataclass(frozen=True, slots=True)
class BatchCost:
    """What a batch has read and written, and how long it took."""

    read: int
    """Rows or bytes."""
    written: int
    """Rows."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How much a batch may read, so that it takes about its target."""

    target_s: float
    amount: int
    """Rows or bytes."""
    least: int = 1
    most: int | None = None

    def after(self, amount: int, seconds: float) -> Pace:
        """Return the pace after a batch that has read so much in so many seconds."""
        if amount <= 0 or seconds <= 0:
            return self
        fitting = amount * self.target_s / seconds
        is_full = amount >= self.amount * _FULL
        if is_full and not _NEAR[0] <= seconds / self.target_s <= _NEAR[1]:
            return self._with(min(fitting, self.amount * _GROWTH))
        if seconds > self.target_s * _NEAR[1]:
            return self._with(min(fitting, self.amount))
        if not is_full and seconds >= self.target_s * _TELLING:
            # The shorter it was, the more of it was work that does not grow with the rows.
            room = 1 + (1 - seconds / self.target_s) ** 2
            return self._with(min(fitting * max(room, 1), self.amount))
        return self

    def for_readers(self, taken: int | None, batch: BatchCost) -> int:
        """Return how much the next batch may read if its readers are not to miss their target.

        Args:
            taken: How many rows the readers take in a batch of theirs; None if nothing bounds them.
            batch: The last one. The next writes as many rows for what it reads.
        """
        if taken is None or not (batch.written and batch.seconds):
            return self.amount
        fast_enough = batch.read / batch.seconds * self.target_s * _LEAST_SHARE
        wanted = max(taken * batch.read / batch.written, fast_enough)
        return max(int(min(wanted, self.amount)), self.least)

    def _with(self, amount: float) -> Pace:
        within = amount if self.most is None else min(amount, self.most)
        return replace(self, amount=max(int(within), self.least))
