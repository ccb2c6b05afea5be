"""Programs whose batches have nothing to do with each other."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from tests.dstream.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.dstream.program import Collect, Queue

LINES: Queue = (["to be or not", "to be"], ["that is"], [], ["the question", "that", "to be"])
NUMBERS: Queue = ([5, 3, 8, 1], [2], [], [7, 7, 4, 9, 6])
PAIRS: Queue = ([("a", 1), ("b", 2), ("a", 3)], [("c", 4)], [], [("b", 5), ("b", 6), ("a", 7)])
OTHERS: Queue = ([("a", "x"), ("c", "y")], [("c", "z"), ("c", "w")], [("a", "v")], [("b", "u")])


def word_count(ssc: Any, streams: Any, collect: Collect) -> None:
    [lines] = streams
    words = lines.flatMap(lambda line: line.split(" "))
    collect("counts", words.map(lambda word: (word, 1)).reduceByKey(add))


def mapped_and_filtered(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    odd = numbers.filter(lambda number: number % 2)
    collect("odd", odd)
    collect("squares", odd.map(lambda number: number * number))
    collect("kept", odd.map(str, preservesPartitioning=True))


def flat_mapped(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    collect("ranges", numbers.flatMap(range))
    collect("none", numbers.flatMap(lambda number: ()))


def partitions(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams

    def largest(elements: Iterable[int]) -> Iterable[int]:
        return [max(elements, default=0)]

    def numbered(index: int, elements: Iterable[int]) -> Iterable[tuple[int, int]]:
        return ((index, element) for element in elements)

    collect("largest", numbers.mapPartitions(largest))
    collect("numbered", numbers.mapPartitionsWithIndex(numbered))
    collect("glommed", numbers.glom())


def counted(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    collect("count", numbers.count())
    collect("count of none", numbers.filter(lambda number: number > 100).count())


def reduced(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    collect("sum", numbers.reduce(add))
    collect("greatest", numbers.reduce(max))


def counted_by_value(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    collect("parity", numbers.map(lambda number: number % 2).countByValue())
    collect("values", numbers.countByValue())


def combined_by_key(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    sums = pairs.combineByKey(
        lambda value: (value, 1),
        lambda one, value: (one[0] + value, one[1] + 1),
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
    )
    collect("means", sums.mapValues(lambda total: total[0] / total[1]))
    collect("in three", pairs.reduceByKey(add, numPartitions=3).glom().map(len))


def grouped_by_key(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    collect("groups", pairs.groupByKey().mapValues(sorted))
    collect("lengths", pairs.groupByKey(1).mapValues(len).glom())


def values_of_pairs(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    collect("doubled", pairs.mapValues(lambda value: value * 2))
    collect("repeated", pairs.flatMapValues(range))


def partitioned(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    by_key = pairs.partitionBy(2, ord)
    collect("by own function", by_key.glom().map(sorted))
    collect("by hash", pairs.map(lambda kv: (kv[1], kv[0])).partitionBy(3).glom().map(sorted))
    kept = by_key.mapValues(str).reduceByKey(add, 2)
    collect("reduced", kept.mapValues(sorted))


def repartitioned(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    spread = numbers.repartition(3)
    collect("elements", spread)
    collect("partitions", spread.glom().count())


def stored(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    cached = numbers.map(lambda number: number + 1).cache()
    kept = cached.filter(bool).persist(StorageLevel.MEMORY_AND_DISK)
    collect("cached", cached)
    collect("kept", kept.map(lambda number: -number))
    assert kept.context() is ssc


def united(ssc: Any, streams: Any, collect: Collect) -> None:
    one, other = streams
    collect("two", one.union(other))
    collect("one", ssc.union(one))
    collect("three", ssc.union(one, other, one))
    collect("of words", one.map(str).union(other))


def cogrouped(ssc: Any, streams: Any, collect: Collect) -> None:
    one, other = streams

    def plain(groups: Any) -> list[list[Any]]:
        return [sorted(group) for group in groups]

    collect("groups", one.cogroup(other).mapValues(plain))
    collect("in one partition", one.cogroup(other, numPartitions=1).mapValues(plain))


def joined(ssc: Any, streams: Any, collect: Collect) -> None:
    one, other = streams
    collect("inner", one.join(other))
    collect("left", one.leftOuterJoin(other))
    collect("right", one.rightOuterJoin(other, 3))
    collect("full", one.fullOuterJoin(other, numPartitions=1))
    collect("inner in one partition", one.join(other, 1).glom().map(len))


def sorted_by_transform(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    ordered = pairs.transform(lambda rdd: rdd.sortBy(lambda kv: (-kv[1], kv[0])))
    collect("sorted", ordered)
    collect("distinct keys", pairs.transform(lambda rdd: rdd.keys().distinct()))
    collect("zipped", ordered.transform(lambda rdd: rdd.zipWithIndex()))


def transformed_with_time(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams

    def dated(time: Any, rdd: Any) -> Any:
        number = collect.number(time)
        return rdd.map(lambda element: (number, element))

    twice = numbers.transform(dated).transform(dated)
    collect("dated", twice)


def joined_with_data_set(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    names = ssc.sparkContext.parallelize([("a", "Anna"), ("b", "Bert"), ("d", "Dora")])
    collect("named", pairs.transform(lambda rdd: rdd.join(names)))
    collect("nameless", pairs.transform(lambda rdd: rdd.subtractByKey(names)))


def without_blacklist(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    listed = ssc.sparkContext.broadcast(frozenset("b"))
    collect("allowed", pairs.filter(lambda kv: kv[0] not in listed.value))


def transformed_together(ssc: Any, streams: Any, collect: Collect) -> None:
    one, other = streams
    collect("without", one.transformWith(lambda a, b: a.subtractByKey(b), other))

    def dated(time: Any, a: Any, b: Any) -> Any:
        number = collect.number(time)
        return a.cartesian(b).map(lambda pair: (number, pair))

    collect("products", one.transformWith(dated, other))
    collect("kept", one.transformWith(lambda a, b: a.union(b), other, keepSerializer=True))


def transformed_by_context(ssc: Any, streams: Any, collect: Collect) -> None:
    one, other = streams
    collect(
        "of three",
        ssc.transform([one, other, one], lambda rdds: rdds[0].union(rdds[1]).union(rdds[2])),
    )
    collect("of one", ssc.transform([other], lambda rdds: rdds[0].values()))


def diamond(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    halves = numbers.map(lambda number: (number // 2, number))
    small = halves.filter(lambda kv: kv[0] < 3)
    large = halves.filter(lambda kv: kv[0] >= 2)
    collect("both", small.join(large))
    collect("either", small.union(large).groupByKey().mapValues(sorted))


def batch_functions_shared(ssc: Any, streams: Any, collect: Collect) -> None:
    [lines] = streams

    def counts(rdd: Any) -> Any:
        return rdd.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(add)

    collect("stream", lines.transform(counts))
    everything = [line for batch in LINES for line in batch]
    history = counts(ssc.sparkContext.parallelize(everything))
    collect("beside history", lines.transform(lambda rdd: counts(rdd).join(history)))


PROGRAMS = (
    Program(word_count, (LINES,), 5),
    Program(mapped_and_filtered, (NUMBERS,), 4),
    Program(flat_mapped, (NUMBERS,), 4),
    Program(partitions, (NUMBERS,), 5, ordered=frozenset({"largest", "numbered", "glommed"})),
    Program(counted, (NUMBERS,), 5),
    Program(reduced, (NUMBERS,), 5),
    Program(counted_by_value, (NUMBERS,), 4),
    Program(combined_by_key, (PAIRS,), 5),
    Program(grouped_by_key, (PAIRS,), 4),
    Program(values_of_pairs, (PAIRS,), 4),
    Program(partitioned, (PAIRS,), 4, ordered=frozenset({"by own function", "by hash"})),
    Program(repartitioned, (NUMBERS,), 5),
    Program(stored, (NUMBERS,), 4),
    Program(united, (NUMBERS, NUMBERS[::-1]), 5),
    Program(cogrouped, (PAIRS, OTHERS), 5),
    Program(joined, (PAIRS, OTHERS), 5),
    Program(sorted_by_transform, (PAIRS,), 4, ordered=frozenset({"sorted", "zipped"})),
    Program(transformed_with_time, (NUMBERS,), 4),
    Program(joined_with_data_set, (PAIRS,), 4),
    Program(without_blacklist, (PAIRS,), 4),
    Program(transformed_together, (PAIRS, OTHERS), 4),
    Program(transformed_by_context, (PAIRS, OTHERS), 4),
    Program(diamond, (NUMBERS,), 4),
    Program(batch_functions_shared, (LINES,), 4),
)
