from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, cast

import pytest

from millstream.dstream.home import StreamHome
from millstream.dstream.states import Emitting, VersionedState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path


class Lists:
    """What an RDD is to a state: partitions that are computed each time they are read."""

    def __init__(self, partitions: Sequence[Callable[[], Iterable[Any]]]) -> None:
        self.partitions = partitions

    def mapPartitionsWithIndex(  # noqa: N802
        self,
        f: Callable[[int, Iterator[Any]], Iterable[Any]],
        preservesPartitioning: bool = False,  # noqa: N803
    ) -> Lists:
        def computed(index: int, of: Callable[[], Iterable[Any]]) -> Callable[[], Iterable[Any]]:
            return lambda: f(index, iter(of()))

        return Lists([computed(index, of) for index, of in enumerate(self.partitions)])

    def partitionBy(self, count: int) -> Lists:  # noqa: N802
        pairs = self.collect()
        return Lists([partial(list, [p for p in pairs if p[0] % count == i]) for i in range(count)])

    def getNumPartitions(self) -> int:  # noqa: N802
        return len(self.partitions)

    def collect(self) -> list[Any]:
        return [*chain.from_iterable(of() for of in self.partitions)]

    def count(self) -> int:
        return len(self.collect())


class Context:
    """What a SparkContext is to a state."""

    def parallelize(self, elements: Iterable[Any], count: int) -> Lists:
        given = [*elements]
        return Lists([partial(list, given[index::count]) for index in range(count)])


class Opened:
    """A state in a folder, as one driver has it."""

    def __init__(self, folder: Path) -> None:
        self._home = StreamHome(str(folder))
        self.state = VersionedState(cast("Any", Context()), self._home, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._home.close()

    def write(self, ms: int, buckets: int, *keys: int) -> None:
        rows = Context().parallelize([(key, 1) for key in keys], 2)
        self.state.write(ms, buckets, cast("Any", rows), Emitting(count))

    def pairs(self, ms: int) -> dict[int, int]:
        version = self.state.at(ms)
        assert version is not None
        return dict(self.state.pairs(version).collect())

    def emitted(self, ms: int) -> Any:
        version = self.state.at(ms)
        assert version is not None
        return self.state.emitted(version)


def count(
    held: Iterator[Any], rows: Iterator[Any], emit: Callable[[Any], None]
) -> Iterable[tuple[int, int]]:
    counts = dict(held)
    for key, one in rows:
        counts[key] = counts.get(key, 0) + one
        emit(key)
    return counts.items()


@pytest.mark.parametrize(("before", "after"), [(2, 4), (8, 4)])
def test_a_window_reads_a_version_of_other_buckets_while_the_next_is_written(
    tmp_path: Path, before: int, after: int
) -> None:
    with Opened(tmp_path) as first:
        first.write(1000, before, 1, 2, 3)

    with Opened(tmp_path) as second:
        window = second.emitted(1000)
        second.write(2000, after, 3, 4)
        assert sorted(window.collect()) == [1, 2, 3]
    with Opened(tmp_path) as third:
        third.write(3000, after, 4)
        assert sorted(third.emitted(1000).collect()) == [1, 2, 3]
        assert third.pairs(3000) == {1: 1, 2: 1, 3: 2, 4: 2}

    names = sorted(folder.name for folder in (tmp_path / "dstream/states/0").iterdir())
    assert names == [f"1000.{before}", f"2000.{after}", f"3000.{after}"]


def test_a_driver_that_dies_while_it_spreads_a_version_leaves_the_version(tmp_path: Path) -> None:
    with Opened(tmp_path) as first:
        first.write(1000, 8, 1, 2, 3)
    torn = tmp_path / "dstream/states/0/1000.4.tmp"
    torn.mkdir()
    (torn / "state-00000").write_bytes(b"torn")

    with Opened(tmp_path) as second:
        second.write(2000, 4, 3)
        assert second.pairs(2000) == {1: 1, 2: 1, 3: 2}
