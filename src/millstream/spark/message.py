"""The message of a Spark error."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.errors import PySparkException


def message_of(error: PySparkException) -> str:
    """Return the message of a Spark error, without its plan and trace."""
    sentence = (error.getMessage() or str(error)).split("\n", 1)[0]
    prefix = f"[{error.getCondition()}] "
    return sentence.removeprefix(prefix).split(" SQLSTATE:")[0].rstrip(";")
