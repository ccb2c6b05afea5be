"""The memory of a key, packed into few bytes."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.operators.patterns.automaton import Begun, Branch, Link, MatchMemory, Row, linked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.operators.patterns.program import Program


def pack(memory: MatchMemory) -> bytes | None:
    """Write the memory of a key; None if it is empty."""
    if not memory.begun and not memory.pending:
        return None
    links = _links(memory)
    rows = {id(r): r for r in _rows(memory, links)}
    taken = sorted(rows.values(), key=lambda row: row.number)
    row_at = {id(row): place for place, row in enumerate(taken)}
    link_at = {id(link): place for place, link in enumerate(links)}

    def place(link: Link | None) -> int:
        return -1 if link is None else link_at[id(link)]

    return msgspec.msgpack.encode(
        [
            [[r.at, r.mask, r.text, r.compared, r.tie] for r in taken],
            [[place(k.before), k.variable, row_at[id(k.row)]] for k in links],
            [
                [
                    row_at[id(b.first)],
                    b.variable,
                    place(b.match),
                    [[w.origin, w.target, w.so_far, place(w.link)] for w in b.branches],
                ]
                for b in memory.begun
            ],
            [[r.at, r.mask, r.text, r.compared, r.tie] for r in memory.pending],
        ]
    )


def unpack(packed: bytes | None, program: Program) -> MatchMemory:
    """Read the memory of a key."""
    if packed is None:
        return MatchMemory()
    rows, chains, begun, pending = msgspec.msgpack.decode(packed)
    taken = [
        Row(at, mask, text, compared, tie, number)
        for number, (at, mask, text, compared, tie) in enumerate(rows)
    ]
    links: list[Link] = []
    for before, variable, row in chains:
        links.append(linked(program, links[before] if before >= 0 else None, variable, taken[row]))

    def link(place: int) -> Link | None:
        return links[place] if place >= 0 else None

    memory = MatchMemory(pending=[Row(*row) for row in pending], count=len(taken))
    for first, variable, last, waiting in begun:
        branches = [Branch(o, t, n, link(at)) for o, t, n, at in waiting]
        one = Begun(taken[first], variable, branches, link(last))
        memory.begun.put(one, one.awaits(program))
    return memory


def _links(memory: MatchMemory) -> list[Link]:
    """All links, each after the one before it."""
    found: dict[int, Link] = {}
    for begun in memory.begun:
        for link in (begun.match, *(branch.link for branch in begun.branches)):
            new = takewhile(lambda part: id(part) not in found, link.chain() if link else ())
            found.update({id(part): part for part in [*new][::-1]})
    return list(found.values())


def _rows(memory: MatchMemory, links: list[Link]) -> Iterator[Any]:
    yield from (begun.first for begun in memory.begun)
    yield from (link.row for link in links)
