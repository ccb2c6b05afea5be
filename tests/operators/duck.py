"""What operators should give, worked out by DuckDB, or by hand where SQL has no word for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = tuple[Any, ...]

NEAR = "s.ad = c.ad AND c.us - s.us BETWEEN -{before} AND {after}"
JOINS = {
    "inner": "SELECT s.ad, s.us, s.site, c.us, c.n FROM shown s JOIN clicked c ON {near}",
    "left": "SELECT s.ad, s.us, s.site, c.us, c.n FROM shown s LEFT JOIN clicked c ON {near}",
    "right": "SELECT c.ad, s.us, s.site, c.us, c.n FROM shown s RIGHT JOIN clicked c ON {near}",
    "full": "SELECT coalesce(s.ad, c.ad), s.us, s.site, c.us, c.n "
    "FROM shown s FULL JOIN clicked c ON {near}",
    "semi": "SELECT * FROM shown s WHERE EXISTS (FROM clicked c WHERE {near})",
}
AS_OF = """
    WITH known AS (
        SELECT ad, us, arg_max(n, n || '}}') AS n FROM clicked WHERE ad IS NOT NULL GROUP BY ad, us
    ), found AS (
        SELECT s.*, c.us AS c_us, c.n, coalesce(s.us - c.us <= {age}, false) AS is_young
        FROM shown s ASOF LEFT JOIN known c ON s.ad = c.ad AND s.us >= c.us
    )
    SELECT ad, us, site, IF(is_young, c_us, NULL), IF(is_young, n, NULL) FROM found
"""
TOP = """
    WITH windows AS (
        SELECT unnest([us // {slide} * {slide} - {slide}, us // {slide} * {slide}]) AS began, *
        FROM shown
    ), counts AS (SELECT began, ad, count(*) AS n FROM windows GROUP BY ALL)
    SELECT began, ad, n, {rank} AS rank FROM counts QUALIFY rank <= {k}
"""
RANKS = {
    "cut": "row_number() OVER (PARTITION BY began ORDER BY n DESC, ad DESC)",
    "all": "rank() OVER (PARTITION BY began ORDER BY n DESC)",
}
SESSIONS = """
    WITH marked AS (
        SELECT ad, us, coalesce(us - lag(us) OVER by_ad > {gap}, true)::INT AS begins
        FROM shown WHERE ad IS NOT NULL WINDOW by_ad AS (PARTITION BY ad ORDER BY us)
    ), numbered AS (
        SELECT ad, us, sum(begins) OVER (PARTITION BY ad ORDER BY us) AS session FROM marked
    )
    SELECT ad, min(us), max(us) + {gap}, count(*) FROM numbered GROUP BY ad, session
"""


class Duck:
    """Rows shown and clicked: key, microseconds, and one more column."""

    def __init__(self, shown: Sequence[Row], clicked: Sequence[Row] = ()) -> None:
        self._connection = duckdb.connect()
        for name, rows, last in (("shown", shown, "site"), ("clicked", clicked, "n")):
            columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
            kinds = [pa.string(), pa.int64(), pa.string() if last == "site" else pa.int32()]
            arrays = [pa.array(c, k) for c, k in zip(columns, kinds, strict=True)]
            self._connection.register(name, pa.table(arrays, names=["ad", "us", last]))

    def joined(self, how: str, before_us: int, after_us: int) -> list[Row]:
        """Rows that are near each other."""
        near = NEAR.format(before=before_us, after=after_us)
        return self._sorted(JOINS[how].format(near=near))

    def joined_until(self, how: str, lasts_us: Mapping[str, int], longest_us: int) -> list[Row]:
        """Rows shown with clicks from their time on, for as long as their site says."""
        cases = " ".join(f"WHEN '{site}' THEN {us}" for site, us in lasts_us.items())
        near = f"s.ad = c.ad AND c.us - s.us BETWEEN 0 AND CASE s.site {cases} END"
        return self._sorted(JOINS[how].format(near=f"{near} AND c.us - s.us <= {longest_us}"))

    def all_pairs(self) -> list[Row]:
        """Rows of equal keys."""
        return self._sorted(JOINS["inner"].format(near="s.ad = c.ad"))

    def as_of(self, age_us: int = 10**15) -> list[Row]:
        """Each row shown with the latest click before it."""
        return self._sorted(AS_OF.format(age=age_us))

    def top(self, k: int, slide_us: int, ties: str) -> list[Row]:
        """The most frequent of windows of two slides each."""
        return self._sorted(TOP.format(k=k, slide=slide_us, rank=RANKS[ties]))

    def tumbling(self, length_us: int) -> list[Row]:
        """How often each key is in each window."""
        began = f"us // {length_us} * {length_us}"
        return self._sorted(f"SELECT {began} AS began, ad, count(*) FROM shown GROUP BY ALL")

    def sessions(self, gap_us: int) -> list[Row]:
        """Rows of a key with no more than a gap between them."""
        return self._sorted(SESSIONS.format(gap=gap_us))

    def totals(self) -> list[Row]:
        """Clicks added up by key."""
        added = "count(*), count(DISTINCT n), sum(n)::BIGINT, avg(n)"
        return self._sorted(f"SELECT ad, {added} FROM clicked GROUP BY ad")

    def _sorted(self, query: str) -> list[Row]:
        return in_order(self._connection.sql(query).fetchall())


def once(shown: Sequence[Row], within_us: int) -> list[Row]:
    """Rows without repetitions, by going through those of each key."""
    kept: list[Row] = []
    for key in {row[0] for row in shown}:
        last: int | None = None
        for row in sorted((r for r in shown if r[0] == key), key=lambda r: (r[1], r[2])):
            if last is None or row[1] - last > within_us:
                kept.append(row)
                last = row[1]
    return in_order(kept)


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows as they can be compared."""
    return sorted((tuple(row) for row in rows), key=str)
