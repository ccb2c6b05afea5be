"""The most frequent hashtags of the last minute, every five seconds.

nc -lk 9999
python examples/dstreams/hashtags.py localhost 9999 checkpoint

The counts of a window are those of the window before, plus what has come in, less what has gone.
"""

import sys
from operator import add, sub
from typing import Any

from pyspark import SparkContext

from millstream.dstream import DStream, StreamingContext


def trending(
    posts: DStream[str], window: int = 60, slide: int = 5, most: int = 10
) -> DStream[tuple[str, int]]:
    """The most frequent hashtags of each window, the most frequent first."""
    tags = posts.flatMap(str.split).filter(lambda word: word.startswith("#"))
    ones = tags.map(lambda tag: (tag.lower(), 1))
    counts = ones.reduceByKeyAndWindow(
        add, sub, window, slide, filterFunc=lambda tag_count: tag_count[1] > 0
    )

    def ranked(rdd: Any) -> Any:
        top = rdd.takeOrdered(most, lambda tag_count: (-tag_count[1], tag_count[0]))
        return rdd.context.parallelize(top, 1)

    return counts.transform(ranked)


def main(host: str, port: str, checkpoint: str) -> None:
    """Print the hashtags until Ctrl-C."""
    ssc = StreamingContext(SparkContext("local[2]", "hashtags"), 1)
    ssc.checkpoint(checkpoint)
    trending(ssc.socketTextStream(host, int(port))).pprint()
    ssc.start()
    ssc.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
