"""Sketches: answers from small summaries of many rows, each with an estimate and its bounds."""

from millstream.operators.sketch.distinct import Distinct
from millstream.operators.sketch.heavy_hitters import HeavyHitters
from millstream.operators.sketch.quantiles import Quantiles

__all__ = ["Distinct", "HeavyHitters", "Quantiles"]
