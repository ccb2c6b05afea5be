"""Counts the words that a server sends; the same code counts the words of files.

lines      every line (the landing table)
words      the words of the lines, in lower case; a view, not stored
counts     how often each word has occurred, kept up to date
top_words  the ten most frequent words, recomputed whenever counts change
"""

from pyspark.sql import DataFrame, functions as F

import millstream as ms

WORD = r"[\p{L}\p{N}]+(?:'\p{L}+)*"

app = ms.App("wordcount")


@app.source
def lines() -> ms.Socket:
    """Lines from a server, such as `nc -lk 9999` or `python feed.py`."""
    return ms.Socket("localhost", 9999)


@app.view
def words(lines: DataFrame) -> DataFrame:
    """The words of every line, as often as they occur."""
    found = F.regexp_extract_all(F.lower("value"), F.lit(WORD), 0)
    return lines.select(F.explode(found).alias("word"))


@app.table(mode="update", key=["word"])
def counts(words: DataFrame) -> DataFrame:
    """How often each word has occurred; one row of state per word, as long as the app runs."""
    return words.groupBy("word").agg(F.count("*").alias("times"))


app.sql(
    "top_words",
    "SELECT word, times FROM counts ORDER BY times DESC, word LIMIT 10",
    mode="complete",
)
