"""Answers to queries as files: CSV and Parquet, written as the rows come."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from millstream.errors import fault
from millstream.views.json_text import to_json, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.sql.answer import Answer


def write_csv(answer: Answer, file: str) -> int:
    """Write an answer as CSV with a header line; return the number of rows.

    Null is an empty field; lists, maps and structs are JSON; the rest is written as in JSON.

    Raises:
        ARGUMENT_REFUSED: The file cannot be written.
    """
    with _written("--csv", file) as draft, draft.open("w", newline="", encoding="utf-8") as stream:
        return print_csv(answer, stream)


def print_csv(answer: Answer, stream: TextIO) -> int:
    """Write an answer as CSV to a stream; return the number of rows."""
    writer, count = csv.writer(stream, lineterminator="\n"), 0
    writer.writerow(answer.columns)
    for rows in answer.batches():
        writer.writerows([_field(value) for value in row] for row in rows)
        count += len(rows)
    return count


def write_parquet(answer: Answer, file: str) -> int:
    """Write an answer as Parquet; return the number of rows.

    Raises:
        ARGUMENT_REFUSED: The file cannot be written, or two columns have one name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, count = list(answer.columns), 0
    if len({*names}) < len(names):
        expected = f"every column a name of its own with AS; they are {', '.join(names)}"
        raise fault("ARGUMENT_REFUSED", option="--parquet", value=file, expected=expected)
    reader = answer.record_batches()
    renamed = zip(names, reader.schema, strict=True)
    schema = pa.schema([field.with_name(name) for name, field in renamed])
    with _written("--parquet", file) as draft, pq.ParquetWriter(draft, schema) as writer:
        for batch in reader:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
            count += batch.num_rows
    return count


@contextmanager
def _written(option: str, file: str) -> Iterator[Path]:
    """Give a draft that becomes the file in one step, or goes."""
    path = Path(file)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        expected = f"a file that can be written: {error.strerror or error}"
        raise fault("ARGUMENT_REFUSED", option=option, value=file, expected=expected) from error
    finally:
        draft.unlink(missing_ok=True)


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json(value) if isinstance(value, list | Mapping) else to_text(value)
