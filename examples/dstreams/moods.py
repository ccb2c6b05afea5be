"""The mood of each user, kept as state, from the words of their last messages.

nc -lk 9999
python examples/dstreams/moods.py localhost 9999 checkpoint

A line is a user, a blank and a message: `ann what a great day`.
"""

import sys
from typing import Any

from pyspark import SparkContext

from millstream.dstream import DStream, State, StateSpec, StreamingContext

FEELINGS = {"great": 2, "good": 1, "fine": 1, "slow": -1, "bad": -1, "broken": -2}
REMEMBERED, GLAD, IDLE_SECONDS = 5, 2, 600


def mood(scores: tuple[int, ...]) -> str:
    """Name a mood."""
    total = sum(scores)
    return "happy" if total >= GLAD else "sad" if total <= -GLAD else "calm"


def felt(user: str, text: str | None, state: "State[tuple[int, ...]]") -> Any:
    """Return the mood when it changes, and "gone" when a user has not written for a while."""
    if text is None:
        return user, "gone"
    before = state.get() if state.exists() else ()
    score = sum(FEELINGS.get(word, 0) for word in text.lower().split())
    now = (*before, score)[-REMEMBERED:]
    state.update(now)
    return None if before and mood(before) == mood(now) else (user, mood(now))


def moods(lines: DStream[str], idle_s: float = IDLE_SECONDS) -> Any:
    """The changes of mood; `stateSnapshots` of it are the last scores of all users."""
    said = lines.filter(lambda line: " " in line).map(lambda line: tuple(line.split(" ", 1)))
    return said.mapWithState(StateSpec.function(felt).timeout(idle_s))


def main(host: str, port: str, checkpoint: str) -> None:
    """Print the changes until Ctrl-C."""
    ssc = StreamingContext(SparkContext("local[2]", "moods"), 1)
    ssc.checkpoint(checkpoint)
    moods(ssc.socketTextStream(host, int(port))).pprint()
    ssc.start()
    ssc.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
