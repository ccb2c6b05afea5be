"""Count words since the start: by updateStateByKey and by mapWithState, with the same answer.

nc -lk 9999
python examples/dstreams/totals.py localhost 9999 checkpoint

Stop it and start it again: the counts go on, because the checkpoint has them.
"""

import sys
from collections.abc import Iterable
from typing import Any

from pyspark import SparkContext

from millstream.dstream import DStream, State, StateSpec, StreamingContext


def pairs(lines: DStream[str]) -> DStream[tuple[str, int]]:
    """A pair for each word."""
    return lines.flatMap(str.split).map(lambda word: (word, 1))


def updated(lines: DStream[str]) -> DStream[tuple[str, int]]:
    """Every word and its count, on every batch: the function is called for each word there is."""

    def update(ones: Iterable[int], total: int | None) -> int:
        return sum(ones) + (total or 0)

    return pairs(lines).updateStateByKey(update)


def mapped(lines: DStream[str]) -> Any:
    """The words of the batch and their counts: the function is called for those alone."""

    def track(word: str, one: int | None, state: "State[int]") -> tuple[str, int]:
        total = (one or 0) + (state.get() if state.exists() else 0)
        state.update(total)
        return word, total

    return pairs(lines).mapWithState(StateSpec.function(track))


def main(host: str, port: str, checkpoint: str) -> None:
    """Print all counts of each second, until Ctrl-C."""

    def create() -> StreamingContext:
        ssc = StreamingContext(SparkContext.getOrCreate(), 1)
        lines = ssc.socketTextStream(host, int(port))
        updated(lines).pprint()
        mapped(lines).stateSnapshots().pprint()
        return ssc

    SparkContext("local[2]", "totals")
    ssc = StreamingContext.getOrCreate(checkpoint, create)
    ssc.start()
    ssc.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
