"""Errors of checkpoints, as they are met."""

from __future__ import annotations

from millstream.errors import CheckpointDamagedError, CheckpointLostError, RepairNotAgreedError

HOME = "/srv/shop/.millstream/shop"
SAMPLES = (
    CheckpointDamagedError(
        "paid", file=f"{HOME}/checkpoints/paid/commits/7", why="it is empty", home=HOME
    ),
    CheckpointLostError(
        "orders",
        file=f"{HOME}/checkpoints/orders/offsets/7",
        lost="where partitions without rows had begun",
    ),
    RepairNotAgreedError(["paid", "daily"]),
)
