"""How one answer differs from another, whatever its types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings, strategies as st

from millstream.serve.difference import write_difference

if TYPE_CHECKING:
    from pathlib import Path

NESTED = pa.struct([("at", pa.timestamp("us", "UTC")), ("tags", pa.map_(pa.string(), pa.int8()))])
FIELDS: Any = [("k", pa.string()), ("n", pa.float64()), ("more", NESTED), ("_gone0", pa.bool_())]
SCHEMA = pa.schema(FIELDS)
ROWS = st.dictionaries(st.sampled_from(["a", "b", "c", None]), st.sampled_from([0.5, 1.0, None]))


def answer(rows: dict[str | None, float | None]) -> pa.Table:
    more = {"at": datetime(2024, 2, 29, 12, tzinfo=UTC), "tags": [("x", 1)]}
    listed = [{"k": k, "n": n, "more": more, "_gone0": False} for k, n in rows.items()]
    return pa.Table.from_pylist(listed, SCHEMA)


@settings(max_examples=12)
@given(old=ROWS, new=ROWS)
def test_what_is_new_another_or_gone_turns_one_answer_into_the_other(
    tmp_path_factory: Any, old: dict[str | None, float | None], new: dict[str | None, float | None]
) -> None:
    folder: Path = tmp_path_factory.mktemp("difference")
    files = {"old": answer(old), "new": answer(new)}
    for name, rows in files.items():
        if rows.num_rows:
            pq.write_table(rows, folder / f"{name}.parquet")
    there = {name: [f for f in [folder / f"{name}.parquet"] if f.exists()] for name in files}

    write_difference(folder / "out", old=there["old"], new=there["new"], key=["k"], gone=["_gone0"])

    shown = pq.read_table(folder / "out") if old or new else answer({})
    result = dict(old)
    for row in shown.to_pylist():
        if row["_gone0"]:
            del result[row["k"]]
        else:
            assert result.get(row["k"], "absent") != row["n"], "reported a row that is the same"
            result[row["k"]] = row["n"]
    assert result == new
    assert shown.schema.names == SCHEMA.names
    assert shown.select(["k", "n"]).schema.types == SCHEMA.types[:2]
    more: list[Any] = shown["more"].to_pylist()
    assert all(m["at"].tzinfo and m["tags"] == [("x", 1)] for m in more)
