"""Spark's types as annotations name them where nothing of Spark is loaded.

Type checkers read the stub beside this file, which has the types themselves.
"""

from __future__ import annotations

from typing import Any

DataFrame = DataStreamWriter = SparkSession = StructType = Any
