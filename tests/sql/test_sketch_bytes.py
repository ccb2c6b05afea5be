"""Bytes that are no sketch: a query that reads them fails, and its process goes on.

DataSketches is native code, so what could crash is read in a process of its own.
"""

from __future__ import annotations

import random
import struct
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import raises

from millstream.lake.home import Home
from millstream.sql import frequent_items, query, sketch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MUTATIONS = 600
TELLING = (0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 63, 64, 127, 128, 255)
"""Bytes at which sizes and flags change their meaning."""


def kll(count: int, k: int = 20) -> bytes:
    from datasketches import kll_doubles_sketch

    made = kll_doubles_sketch(k)
    for number in range(count):
        made.update(float(number))
    return bytes(made.serialize())


def theta(count: int, lg_k: int = 9, *, is_packed: bool = True) -> bytes:
    from datasketches import update_theta_sketch

    made = update_theta_sketch(lg_k)
    for number in range(count):
        made.update(number)
    made.trim()
    return bytes(made.compact().serialize(compress=is_packed))


def items(count: int) -> bytes:
    from datasketches import frequent_strings_sketch

    made = frequent_strings_sketch(6)
    for number in range(count):
        made.update(f"{number % 40}")
    return bytes(made.serialize()) + struct.pack(">q", count % 3)


def valid(kind: str) -> list[bytes]:
    counts = (0, 1, 2, 9, 50, 700, 5000)
    if kind == "kll":
        return [kll(count, k) for count in counts for k in (8, 20, 200)]
    if kind == "theta":
        forms = (True, False)
        return [theta(count, is_packed=packed) for count in counts for packed in forms]
    return [items(count) for count in counts]


def reads(kind: str, data: bytes, other: bytes) -> Iterator[Callable[[], Any]]:
    """Whatever a query can do with bytes."""
    if kind == "kll":
        yield lambda: sketch.kll_count(data)
        yield lambda: sketch.kll_quantiles(data, [0.0, 0.5, 1.0])
        yield lambda: sketch.kll_ranks(data, [1.0, float("nan")])
        yield lambda: sketch.kll_quantiles(sketch.kll_merge([other, data, data]), [0.5])
        yield lambda: sketch.kll_merge([data, other, data], 8)
    elif kind == "theta":
        yield lambda: sketch.distinct_estimate(data)
        yield lambda: sketch.theta_estimate(sketch.theta_union([data, other], 5))
        for pair in ((data, other), (other, data)):
            yield lambda pair=pair: sketch.theta_intersection(*pair)  # type: ignore[misc]
            yield lambda pair=pair: sketch.theta_difference(*pair)  # type: ignore[misc]
    else:
        yield lambda: frequent_items.top_of("string", data, 5)
        yield lambda: frequent_items.merge("string", [other, data, data], 8)


def read_all(kind: str, data: bytes, other: bytes) -> int:
    """Read bytes in every way; return how often they were refused."""
    refused = 0
    for read in reads(kind, data, other):
        try:
            read()
        except (ValueError, IndexError, ArithmeticError, RuntimeError, struct.error):
            refused += 1
    return refused


def read_mutations(kind: str, seed: int) -> None:
    dice, whole = random.Random(f"{kind} {seed}"), valid(kind)
    for _ in range(MUTATIONS):
        data = bytearray(dice.choice(whole))
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            at = dice.randrange(min(len(data), 32 if dice.random() < 0.8 else len(data)))
            data[at] = dice.choice(TELLING) if dice.random() < 0.7 else dice.randrange(256)
        if dice.random() < 0.1:
            data = data[: dice.randrange(1, len(data) + 1)]
        read_all(kind, bytes(data), dice.choice(whole))


def read_refused(kind: str, data: bytes, other: bytes) -> None:
    assert read_all(kind, data, other)


def survives(target: Callable[..., None], *arguments: object) -> bool:
    """Whether a process of its own comes to an end, and to a good one."""
    process = get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join(60)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode == 0


def with_bytes(data: bytes, at: int, *more: int) -> bytes:
    changed = bytearray(data)
    changed[at : at + len(more)] = more
    return bytes(changed)


def endless_kll() -> bytes:
    """Eight values at the highest level: they stand for 2^63."""
    header = struct.pack("<BBBBHBBQHBB", 5, 1, 15, 0, 8, 8, 0, 2**63, 8, 61, 0)
    return header + struct.pack("<61I", *[480] * 61) + struct.pack("<10d", *[1.0] * 10)


REFUSED = {
    "a level beyond the bytes": ("kll", with_bytes(kll(5000), 27, 14)),
    "no levels": ("kll", with_bytes(kll(5000), 18, 0)),
    "a count that is another": ("kll", with_bytes(kll(5000), 8, 1)),
    "more values than are counted": ("kll", endless_kll()),
    "entries of 64 bits": ("theta", with_bytes(theta(50), 3, 64, 4, 0x1A)[:8] + b"\0\0\0\4" * 4),
    "bits that overflow": ("theta", with_bytes(theta(700), 3, 32, 4)[:8] + b"\0\0\0\x08" * 600),
    "an older form": ("theta", with_bytes(theta(50), 1, 1)),
    "a table of 2^64": ("items", with_bytes(items(50), 3, 64, 64)),
    "a table of 2 GB": ("items", with_bytes(items(50), 3, 30, 30)),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["kll", "theta", "items"])
def test_no_mutated_bytes_crash_the_process_that_reads_them(kind: str, seed: int) -> None:
    assert survives(read_mutations, kind, seed)


@pytest.mark.parametrize("name", REFUSED)
def test_bytes_that_are_no_sketch_are_refused(name: str) -> None:
    kind, data = REFUSED[name]

    assert survives(read_refused, kind, data, valid(kind)[-1])


def test_a_query_of_such_bytes_says_so(tmp_path: Path) -> None:
    text = f"SELECT kll_sketch_get_n_double(X'{kll(5000).hex()}') AS n"
    assert query(Home.at(tmp_path), text)[1] == [(5000,)]

    crafted = with_bytes(kll(5000), 27, 14).hex()
    with raises("SQL_FAILED", match="these bytes are no KLL sketch"):
        query(Home.at(tmp_path), f"SELECT kll_sketch_get_n_double(X'{crafted}') AS n")


@pytest.mark.parametrize("k", [8, 20, 200, 500])
def test_whole_and_merged_sketches_are_read(k: int) -> None:
    counts = (0, 1, 2, 7, 8, 9, 199, 500, 5000, 20_000)
    for count in counts:
        merged = sketch.kll_merge([kll(count, k), kll(count // 2, 8), kll(3)])
        assert sketch.kll_count(kll(count, k)) == count
        total = count + count // 2 + 3
        assert sketch.kll_count(merged) == total
        assert sketch.kll_count(sketch.kll_merge([merged, merged], k)) == 2 * total
        one = sketch.theta_union([theta(count), theta(count, is_packed=False)], 9)
        assert sketch.theta_estimate(one) == sketch.theta_estimate(theta(count))
        nothing = sketch.theta_difference(one, theta(count))
        assert sketch.theta_estimate(nothing) == 0
        both = frequent_items.merge("string", [items(count), items(count)], 48)
        assert frequent_items.top_of("string", both, 1) is not None
