"""The statements that read Avro's encoding: `raw` is the record, `size` its bytes, `i` the place.

A value as it was written goes into `v`.
"""

from __future__ import annotations

WEIGHTLESS = 65_536
"""The most items without a byte that are accepted."""


def indented(lines: list[str]) -> list[str]:
    """Put lines into a block."""
    return [f" {line}" for line in lines]


def refuse(text: str) -> list[str]:
    """Write the block that raises; the text is one of Python's with values in braces."""
    return [f" raise Fault(f{text!r})"]


NUMBER = [
    "v = raw[i]",
    "i += 1",
    "if v > 127: v, i = long(raw, i - 1)",
    "else: v = (v >> 1) ^ -(v & 1)",
]
LENGTH = [*NUMBER, "if v < 0:", *refuse("the length {v} is negative")]
SLICE = ["if n > size: raise IndexError", "v = raw[i:n]", "i = n"]
BYTES = [*LENGTH, "n = i + v", *SLICE]
TEXT = [*BYTES, 'v = str(v, "utf-8")']
BOOLEAN = [
    "v = raw[i]",
    "i += 1",
    "if v > 1:",
    *refuse("expected boolean, got byte {v}"),
    "v = v == 1",
]
FLOAT = ["v, = float4(raw, i)", "i += 4"]
DOUBLE = ["v, = float8(raw, i)", "i += 8"]


def bounded(bounds: tuple[int, int], word: str, shown: str = "v") -> list[str]:
    """Refuse a number that is out of bounds."""
    return [f"if not {bounds[0]} <= v <= {bounds[1]}:", *refuse(f"{{{shown}}} does not fit {word}")]


INT = [*NUMBER, *bounded((-(2**31), 2**31 - 1), "int")]


def symbol(name: str, count: int) -> list[str]:
    """Read the number of a symbol."""
    return [*NUMBER, f"if not 0 <= v < {count}:", *refuse(f"enum {name} has no symbol {{v}}")]


def passed(count: int | str) -> list[str]:
    """Pass over so many bytes."""
    return [f"i += {count}", "if i > size: raise IndexError"]


def chosen(branches: list[list[str]]) -> list[str]:
    """Read the number of a branch, then its value."""
    lines = [*NUMBER]
    for number, branch in enumerate(branches):
        lines.append(f"{'elif' if number else 'if'} v == {number}:")
        lines += indented(branch or ["pass"])
    return [*lines, "else:", *refuse("the union has no branch {v}")]


def tried(lines: list[str], place: str) -> list[str]:
    """Add to faults the part in which they are."""
    caught = ["except FAULTS as error:", f" raise within(error, {place}) from None"]
    return ["try:", *indented(lines), *caught]


def blocks(item: list[str], *, room: str) -> list[str]:
    """Read the items of an array or a map, block by block; so many at most as there is room for."""
    count = ["if v < 0:", " count = -v", *indented(LENGTH), "else: count = v"]
    limit = [f"if count > {room}:", *refuse("{count} items do not fit into the record")]
    lines = [*count, *limit, "for _ in range(count):", *indented(item or ["break"])]
    return ["while True:", *indented([*NUMBER, "if not v: break", *lines])]
