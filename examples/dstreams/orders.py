"""Orders of a stream joined with the customers of a file, without those on a blacklist.

nc -lk 9999
python examples/dstreams/orders.py localhost 9999 customers.csv blacklist.txt

A line is an order: `customer,article,amount`. `transform` is called on every batch, so both files
may change while the program runs.
"""

import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from millstream.dstream import DStream, StreamingContext


def by_customer(lines: DStream[str]) -> DStream[tuple[str, tuple[str, float]]]:
    """Orders, by customer."""
    fields = lines.map(lambda line: line.split(",")).filter(lambda each: len(each) == 3)
    return fields.map(lambda each: (each[0], (each[1], float(each[2]))))


def without(orders: DStream[Any], blacklist: Path) -> DStream[Any]:
    """The orders of customers who are not on the list."""

    def allowed(rdd: Any) -> Any:
        listed = frozenset(blacklist.read_text().split())
        return rdd.filter(lambda order: order[0] not in listed)

    return orders.transform(allowed)


def with_city(orders: DStream[Any], customers: Path) -> DStream[Any]:
    """Each order and the city of its customer; None if the customer is not in the file."""

    def named(rdd: Any) -> Any:
        rows = [line.split(",") for line in customers.read_text().splitlines()]
        return rdd.leftOuterJoin(rdd.context.parallelize([(row[0], row[1]) for row in rows]))

    return orders.transform(named)


def main(host: str, port: str, customers: str, blacklist: str) -> None:
    """Print the orders of each second until Ctrl-C."""
    ssc = StreamingContext(SparkContext("local[2]", "orders"), 1)
    orders = by_customer(ssc.socketTextStream(host, int(port)))
    with_city(without(orders, Path(blacklist)), Path(customers)).pprint()
    ssc.start()
    ssc.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
