"""Files of pairs, as workers write and read them: one for each bucket of a state."""

from __future__ import annotations

import os
import pickle
from itertools import islice
from typing import TYPE_CHECKING, Any

from millstream.lake.durable import sync_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_CHUNK = 10_000
"""Elements pickled at a time: one that only wants a few need not read them all."""


def write_elements(file: Path, elements: Iterable[Any], *, durable: bool) -> int:
    """Write elements to a file that gets its name when it is complete; return how many.

    A task may run twice at a time: each attempt has a file of its own until then.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}.{os.urandom(4).hex()}")
    remaining, count = iter(elements), 0
    with draft.open("wb") as out:
        while chunk := list(islice(remaining, _CHUNK)):
            pickle.dump(chunk, out, pickle.HIGHEST_PROTOCOL)
            count += len(chunk)
        if durable:
            sync_written(out)
    draft.replace(file)
    return count


def read_elements(file: Path) -> Iterator[Any]:
    """Read the elements of a file one by one."""
    with file.open("rb") as held:
        while True:
            try:
                chunk = pickle.load(held)
            except EOFError:
                return
            yield from chunk
