"""Count words: of each second of a network stream, or of files as a batch, by the same function.

nc -lk 9999
python examples/dstreams/wordcount.py localhost 9999
python examples/dstreams/wordcount.py README.md docs/concepts.md
"""

import sys
from operator import add
from typing import Any

from pyspark import SparkContext

from millstream.dstream import StreamingContext


def count_words(lines: Any) -> Any:
    """Count the words of an RDD of lines, or of each batch of a DStream of lines."""
    words = lines.flatMap(lambda line: line.lower().split())
    return words.map(lambda word: (word, 1)).reduceByKey(add)


def main() -> None:
    """Count until Ctrl-C, or once."""
    sc = SparkContext("local[2]", "wordcount")
    match sys.argv[1:]:
        case [host, port] if port.isdecimal():
            ssc = StreamingContext(sc, 1)
            count_words(ssc.socketTextStream(host, int(port))).pprint()
            ssc.start()
            ssc.awaitTermination()
        case files:
            counts = count_words(sc.textFile(",".join(files)))
            for word, times in counts.takeOrdered(10, lambda kv: (-kv[1], kv[0])):
                print(f"{times:6} {word}")  # noqa: T201


if __name__ == "__main__":
    main()
