"""Samples of rows that are the same whenever they are taken, and totals estimated from them."""

from millstream.operators.sampling.estimate import estimate, estimate_of_reservoir
from millstream.operators.sampling.reservoir import reservoir, weighted_reservoir
from millstream.operators.sampling.sample import sample, stratified, weighted

__all__ = [
    "estimate",
    "estimate_of_reservoir",
    "reservoir",
    "sample",
    "stratified",
    "weighted",
    "weighted_reservoir",
]
