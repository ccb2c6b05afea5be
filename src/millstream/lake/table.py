"""Tables: a batch of answers, checked against expectations and schema, written exactly once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from millstream.crash import reach
from millstream.errors import fault
from millstream.lake.enforce import TableShape, open_table
from millstream.lake.files import DataFile, count_rows
from millstream.lake.frontier import nothing_known
from millstream.lake.ledger import RULE
from millstream.lake.staging import Staged, digest_without_writing, empty, observe, write_staged
from millstream.model.state import RAISED, ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.lake.delta import FencedTable
    from millstream.lake.frontier import Publication, Published
    from millstream.lake.home import Home
    from millstream.lake.log import Facts
    from millstream.model.dataset import Expectations, Table

    Complete = Callable[[DataFrame], DataFrame]

_KEPT = "_kept"
RULES = "_rules"
RESERVED = (_KEPT, RULES, RAISED, ROW)
_KEEPING_OUT = ("quarantine", "drop")


class TableSink:
    """A Delta table and its quarantine, open for writing."""

    def __init__(
        self,
        declared: Table,
        table: FencedTable,
        quarantine: FencedTable | None,
        home: Home,
        published: Published = nothing_known,
        complete: Complete = lambda answer: answer,
    ) -> None:
        self._complete = complete
        """Completes the rows of a batch."""
        self._declared, self._table, self._quarantine = declared, table, quarantine
        self._staging, self._aside = home.staging(declared.name), home.aside(declared.name)
        self._published, self._home = published, home

    def with_completion(self, complete: Complete) -> TableSink:
        """Return a sink that completes the rows of each batch before it writes them."""
        home, of = self._home, self._declared
        return TableSink(of, self._table, self._quarantine, home, self._published, complete)

    @property
    def facts(self) -> Facts:
        """What is written so far."""
        return self._table.facts

    def stage(self, answer: DataFrame, batch: int) -> Staged:  # noqa: ARG002
        """Write a batch of answers to files; nothing of it is in the table yet."""
        empty(self._staging)
        marked = self._mark(self._complete(answer))
        seen, observation = observe(marked, self._broken(), answer.columns)
        partition_by = list(self._declared.partition_by) if self._declared.mode != "update" else []
        if self._is_split:
            partition_by.append(_KEPT)
        elif _KEPT in marked.columns:
            seen = (seen.where(_KEPT) if keeps_out(self._declared.expect) else seen).drop(
                _KEPT, RULES
            )
        return write_staged(seen, observation, self._staging, partition_by)

    def replay(self, answer: DataFrame) -> str:
        """Compute a batch that is written already, to check that it is the same."""
        marked = self._mark(self._complete(answer))
        return digest_without_writing(*observe(marked, self._broken(), answer.columns))

    def commit(
        self,
        staged: Staged,
        batch: int,
        query_id: str,
        inputs: Mapping[str, int] | None = None,
        published: Publication | None = None,
    ) -> None:
        """Write a batch into the quarantine, then into the table.

        Args:
            staged: The batch.
            batch: Its number.
            query_id: Of the query that writes it.
            inputs: What the answer was made from, if it is recomputed.
            published: What is known of time after it; by default what the table was opened with
                says.

        Raises:
            EXPECTATION_FAILED: Rows violate a rule that stops the table.
            KEY_NOT_UNIQUE: An update has two rows for one key.
        """
        self._fail_if_violated(staged, batch)
        kept, aside, raised = staged.files, tuple[DataFile](), self._raised()
        if self._is_split:
            kept, aside = staged.only(_KEPT, "true"), staged.only(_KEPT, "false")
        gone = None
        if self._declared.mode == "update":
            self._refuse_double_keys((*kept, *aside), batch)
            gone = self._keys(aside)
        counts = self._counts(staged, count_rows(kept), count_rows(aside), count_rows(raised))
        if self._quarantine is not None:
            is_whole = self._declared.mode == "complete"
            write = self._quarantine.replace if is_whole else self._quarantine.append
            facts = _next(self._quarantine.facts, staged, batch, query_id)
            aside = (*(file.without(_KEPT) for file in aside), *raised)
            write(aside, facts.plus({"written": count_rows(aside)}))
            reach("quarantine_commit", self._table.path.parent.parent, self._table.name, batch)
        facts = _next(self.facts, staged, batch, query_id).plus(counts)
        changed = batch if staged.files or self._declared.mode == "complete" else facts.changed
        facts = replace(facts, inputs=inputs or {}, changed=changed, mode=self._declared.mode)
        facts = facts.publishing(published or self._published(batch))
        self._write([file.without(_KEPT) for file in kept], gone, facts)

    def publish(self, published: Publication) -> None:
        """Commit a later frontier, though no row has changed; do nothing if it is not later."""
        facts = self.facts.publishing(published)
        if facts.frontier != self.facts.frontier:
            self._table.publish(facts)

    def _write(self, files: Sequence[DataFile], gone: pa.Table | None, facts: Facts) -> None:
        match self._declared.mode:
            case "update":
                self._table.upsert(files, self._declared.key, facts, gone=gone)
            case "complete":
                self._table.replace(files, facts)
            case _:
                self._table.append(files, facts)

    def _raised(self) -> tuple[DataFile, ...]:
        """Find the rows on which stateful functions raised."""
        if self._quarantine is None:
            return ()
        partition = dict.fromkeys(self._quarantine.partition_by)
        return tuple(DataFile.read(f, partition) for f in sorted(self._aside.glob("*/*.parquet")))

    def _mark(self, answer: DataFrame) -> DataFrame:
        if not self._declared.expect.rules:
            return answer
        rules = broken_rules(self._declared.expect)
        kept = F.size(rules) == 0 if keeps_out(self._declared.expect) else F.lit(True)
        rules = F.when(F.size(rules) > 0, rules)
        return answer.withColumns({_KEPT: kept, RULES: rules})

    @property
    def _is_split(self) -> bool:
        """Whether rejected rows are written too: to the quarantine, or to delete their keys."""
        forgets = self._declared.mode == "update" and keeps_out(self._declared.expect)
        is_aside = self._declared.expect.on_violation == "quarantine"
        return bool(self._declared.expect.rules) and (is_aside or forgets)

    def _broken(self) -> Mapping[str, Column]:
        return _broken(self._declared.expect)

    def _counts(self, staged: Staged, written: int, aside: int, raised: int) -> dict[str, int]:
        quarantined = raised + (aside if self._quarantine is not None else 0)
        read = staged.seen["_rows"] + raised
        counts = {"input": read, "written": written, "quarantined": quarantined}
        counts["dropped"] = counts["input"] - written - quarantined
        rules = self._declared.expect.rules
        return counts | {RULE + name: staged.seen[name] for name in rules}

    def _fail_if_violated(self, staged: Staged, batch: int) -> None:
        if self._declared.expect.on_violation != "fail":
            return
        rules = {name: staged.seen[name] for name in self._declared.expect.rules}
        if any(rules.values()):
            violated = ", ".join(f"{name!r} ({rows} rows)" for name, rows in rules.items() if rows)
            raise fault(
                "EXPECTATION_FAILED",
                at=self._declared.at,
                batch=batch,
                table=self._table.name,
                violated=violated,
            )

    def _refuse_double_keys(self, files: Sequence[DataFile], batch: int) -> None:
        keys = self._keys(files)
        if keys is not None and has_double(keys):
            raise fault(
                "KEY_NOT_UNIQUE",
                at=self._declared.at,
                batch=batch,
                table=self._table.name,
                key=", ".join(self._declared.key),
            )

    def _keys(self, files: Sequence[DataFile]) -> pa.Table | None:
        return keys_of(files, self._declared.key) if files else None


def table_shape(table: Table, schema: str) -> TableShape:
    """Return what the table of an answer looks like; the schema is Spark's JSON."""
    feed = {} if table.mode == "append" else {"delta.enableChangeDataFeed": "true"}
    return TableShape(
        table.name,
        schema,
        table.at,
        partition_by=table.partition_by,
        evolve=table.evolve,
        properties=feed,
    )


def open_table_sink(
    table: Table,
    frame: DataFrame,
    home: Home,
    *,
    epoch: int,
    may_raise: bool = False,
    published: Published = nothing_known,
) -> TableSink:
    """Open a table, and its quarantine if rows may be quarantined.

    Args:
        table: What is declared.
        frame: Its answer.
        home: Where it is.
        epoch: The driver's.
        may_raise: Whether rows on which a function raised are quarantined.
        published: Says what is known of time after a batch.
    """
    shape = table_shape(table, frame.schema.json())
    has_rules = bool(table.expect.rules) and quarantines(table.expect)
    quarantine = None
    if has_rules or may_raise:
        more = [StructField(RULES, ArrayType(StringType()))]
        if may_raise:
            more += [StructField(ROW, StringType()), StructField(RAISED, StringType())]
        aside = replace(
            shape,
            schema=StructType([*frame.schema.fields, *more]).json(),
            partition_by=table.partition_by if table.mode != "update" else (),
            properties={},
            # The table itself is checked against its columns; its quarantine may have had others.
            evolve=True,
        )
        quarantine = open_table(home.quarantine(table.name), aside, epoch=epoch)
    opened = open_table(home.table(table.name), shape, epoch=epoch)
    return TableSink(table, opened, quarantine, home, published)


def keys_of(files: Sequence[DataFile], key: Sequence[str]) -> pa.Table:
    """Read the key columns of files; there must be one at least."""
    # A name selects all columns that begin with it and a dot, too.
    return pa.concat_tables(pq.ParquetFile(f.path).read(list(key)).select(list(key)) for f in files)


def has_double(keys: pa.Table) -> bool:
    """Return whether a key occurs more than once."""
    while any(str(field.type).startswith("struct") for field in keys.schema):
        keys = keys.flatten()
        keys = keys.rename_columns(list(map(str, range(keys.num_columns))))
    return keys.group_by(keys.column_names).aggregate([]).num_rows < keys.num_rows


def accepted_rows(answer: DataFrame, expect: Expectations) -> DataFrame:
    """Return the rows that the rules let into the table."""
    for rule in expect.rules.values() if keeps_out(expect) else ():
        answer = answer.where(F.coalesce(F.expr(rule), F.lit(False)))
    return answer


def quarantined_rows(answer: DataFrame, expect: Expectations) -> DataFrame:
    """Return the rows that the rules put into the quarantine, with the rules that each breaks."""
    if not quarantines(expect):
        answer = answer.where(F.lit(False))
    return answer.withColumn(RULES, broken_rules(expect)).where(F.size(RULES) > 0)


def keeps_out(expect: Expectations) -> bool:
    """Whether rows that break a rule are not in the table."""
    return expect.on_violation in _KEEPING_OUT


def quarantines(expect: Expectations) -> bool:
    """Whether rows that break a rule go to a quarantine."""
    return expect.on_violation == "quarantine"


def broken_rules(expect: Expectations) -> Column:
    """Return the names of the rules that a row breaks."""
    names = [F.when(broken, F.lit(name)) for name, broken in _broken(expect).items()]
    return F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")


def _broken(expect: Expectations) -> Mapping[str, Column]:
    return {name: ~F.coalesce(F.expr(rule), F.lit(False)) for name, rule in expect.rules.items()}


def _next(facts: Facts, staged: Staged, batch: int, query_id: str) -> Facts:
    return replace(facts, query_id=query_id, batch=batch, rows=staged.rows, digest=staged.digest)
