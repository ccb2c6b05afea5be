"""Where Spark's Python workers come from: a process that has the libraries and is forked.

A worker that starts on its own takes most of a second to import them; one that is forked, none.
"""

import gc

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.daemon import manager

__all__ = ["msgspec", "pa", "pc", "pd", "pq"]

if __name__ == "__main__":
    # Rows of a batch are many and hold no cycles: to look for those at every 700th object took 8 to
    # 26 % of the time of functions of a key. What is imported is never looked at again.
    gc.freeze()
    gc.set_threshold(100_000)
    manager()
