"""Which lines of a CSV file are one record, where a quoted field may contain newlines."""

from __future__ import annotations

from bisect import bisect_left
from copy import copy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode.line import NO_RECORD, LineCount

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.landing.decode.csv_reader import CsvReader
    from millstream.landing.decode.line import Run

LIMIT = 16 * 2**20
"""The greatest record of several lines, in bytes."""

_UNCLOSED = "not CSV: the quoted field that line {} opens is not closed {}"


class RecordJoin:
    """Joins the lines of one partition; remembers from batch to batch what is still open."""

    def __init__(self, reader: CsvReader) -> None:
        self._reader = reader
        self._quote = reader.grammar.quote.encode()
        self._lines = LineCount()
        self._held: pa.RecordBatch | None = None
        self._lost: tuple[str | None, str] | None = None

    def join(
        self, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[pa.RecordBatch, dict[int, str]]]:
        """Give the same rows in the same order, and reasons by row of the batch.

        The first line of a record has all of its bytes; the others are `NO_RECORD`.
        """
        for batch in batches:
            held = [] if self._held is None else [self._held]
            for whole in pa.Table.from_batches([*held, batch]).combine_chunks().to_batches():
                yield self._joined(whole, is_last=False)
        if self._held is not None:
            yield self._joined(self._held, is_last=True)

    def _joined(
        self, batch: pa.RecordBatch, *, is_last: bool
    ) -> tuple[pa.RecordBatch, dict[int, str]]:
        value = batch.column("value").cast(pa.binary())
        values: list[bytes] = value.to_numpy(zero_copy_only=False).tolist()
        runs = copy(self._lines).runs(batch.column("_origin"))
        quoted = self._with_open_quotes(value)
        faults: dict[int, str] = {}
        stop = len(values)
        for run in runs:
            opened = self._join_run(run, values, quoted, faults)
            if opened is None:
                continue
            if run.stop == len(values) and not is_last:
                stop = opened
            else:
                reason = _UNCLOSED.format(_line(run, opened), "before the end of the file")
                faults |= dict.fromkeys(range(opened, run.stop), reason)
        self._held = batch.slice(stop) if stop < len(values) else None
        self._lines.runs(batch.column("_origin").slice(0, stop))
        if faults:
            column = batch.schema.get_field_index("value")
            batch = batch.set_column(column, "value", pa.array(values, pa.binary()))
        return batch.slice(0, stop), faults

    def _with_open_quotes(self, value: Any) -> list[int]:
        """Find the lines that may end within quotes."""
        grammar = self._reader.grammar
        counts = pc.count_substring(value, grammar.quote).to_numpy(zero_copy_only=False)
        # A quote that is escaped has no partner; all others of a record come in pairs.
        may_be = counts > 0 if grammar.has_escape else counts % 2 == 1
        found: list[int] = np.flatnonzero(may_be).tolist()
        return found

    def _join_run(
        self, run: Run, values: list[bytes], quoted: list[int], faults: dict[int, str]
    ) -> int | None:
        """Join the records of a run; give the first line of one that is still open, if any."""
        if self._lost is not None and self._lost[0] == run.origin:
            faults |= dict.fromkeys(range(run.start, run.stop), self._lost[1])
            return None
        done = run.start
        for start in quoted[bisect_left(quoted, run.start) : bisect_left(quoted, run.stop)]:
            if start < done or not self._reader.grammar.is_open(_text(values[start])):
                continue
            done, end = self._end(values, start, run.stop)
            match end:
                case "open":
                    return start
                case "too long":
                    reason = _UNCLOSED.format(_line(run, start), f"within {LIMIT // 2**20} MiB")
                    self._lost = (run.origin, reason)
                    faults |= dict.fromkeys(range(start, run.stop), reason)
                    return None
                case "broken":
                    fault = self._reader.syntax_fault(_text(b"\n".join(values[start:done])))
                    place = f"the record of lines {_line(run, start)} to {_line(run, done - 1)}"
                    faults |= dict.fromkeys(range(start, done), f"{fault}, in {place}")
                case "closed":
                    later = range(start + 1, done)
                    values[start:done] = [b"\n".join(values[start:done]), *(b"" for _ in later)]
                    faults |= dict.fromkeys(later, NO_RECORD)
        return None

    def _end(
        self, values: Sequence[bytes], start: int, stop: int
    ) -> tuple[int, Literal["closed", "broken", "too long", "open"]]:
        """Find the line after the record that a line opens, and how it ends."""
        grammar, size = self._reader.grammar, len(values[start])
        for i in range(start + 1, stop):
            size += 1 + len(values[i])
            if size > LIMIT:
                return stop, "too long"
            if self._quote not in values[i]:
                continue
            # Within quotes, a line reads as if it began with one.
            line = grammar.quote + _text(values[i])
            if grammar.is_whole(line):
                return i + 1, "closed"
            if not grammar.is_open(line):
                return i + 1, "broken"
        return stop, "open"


def _line(run: Run, row: int) -> int:
    return run.line + row - run.start


def _text(line: bytes) -> str:
    return line.decode(errors="surrogateescape")
