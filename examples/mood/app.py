"""The mood of each user, as state, from the words of their last messages.

messages  every message, with a verdict
moods     each change of a user's mood, with the words that they use most
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame

import millstream as ms

FEELINGS = {"great": 2, "good": 1, "fine": 1, "slow": -1, "bad": -1, "broken": -2}
WORDS = (*FEELINGS, "the", "train", "coffee", "today")
REMEMBERED, GLAD = 5, 2

app = ms.App("mood")


def message(dice: random.Random, _: int) -> dict[str, object]:
    """Generate a message; some users are in a better mood than others."""
    user = dice.randrange(500)
    words = dice.choices(WORDS, [3 + user % 5] * 3 + [7 - user % 5] * 3 + [4] * 4, k=4)
    return {"user": f"user-{user:03d}", "text": " ".join(words)}


@app.source(event_time="at", watermark="5 seconds")
def messages() -> ms.Generator:
    """Messages, some of them late or malformed."""
    return ms.Generator(
        schema="user STRING NOT NULL, text STRING NOT NULL, at TIMESTAMP",
        make=message,
        event_time="at",
        rate=300,
        seed=7,
        late=0.01,
        malformed=0.01,
    )


@ms.stateful(
    key="user",
    state="mood STRING, recent ARRAY<BIGINT>, words MAP<STRING, BIGINT>",
    emits="user STRING, mood STRING, was STRING, at TIMESTAMP, words ARRAY<STRING>",
    ttl="1 hour",
)
def mood(
    user: str, rows: Sequence[Any], state: Any, timer: ms.Timer
) -> Iterator[dict[str, object]]:
    """Compute the mood from the last five messages, and return it when it changes."""
    for row in rows:
        words = row.text.split()
        for word in words:
            state.words[word] = state.words.get(word, 0) + 1
        state.recent = [*state.recent, sum(FEELINGS.get(w, 0) for w in words)][-REMEMBERED:]
        sum_of_all, was = sum(state.recent), state.mood
        state.mood = "happy" if sum_of_all >= GLAD else "sad" if sum_of_all <= -GLAD else "calm"
        if state.mood != was:
            most = sorted(state.words, key=lambda word: (-state.words[word], word))[:3]
            yield {"user": user, "mood": state.mood, "was": was, "at": timer.now, "words": most}


@app.table
def moods(messages: DataFrame) -> DataFrame:
    """The changes of mood of each user."""
    return mood(messages)
