"""Landing: every input row is decoded and judged once, on the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.lake.enforce import TableShape
from millstream.landing.carried import CARRIED, pack, unpack
from millstream.landing.decode import (
    BENT,
    BLANK,
    decoded_names,
    decoded_schema,
    decoder,
)
from millstream.landing.event_time import columns_read, in_arrow, in_spark, is_legacy
from millstream.landing.idle import in_microseconds
from millstream.landing.text_time import TextTime
from millstream.landing.verdict import (
    DAY,
    Moment,
    Rule,
    as_decoded,
    judge,
    judge_texts,
    numbered,
)
from millstream.model.data_type import Atom, Field
from millstream.model.dataset import VERDICTS
from millstream.model.duration import UNIX_EPOCH
from millstream.model.schema import Schema
from millstream.operators.columns import quoted
from millstream.spark.arrow import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.model.dataset import Source

    Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_MARKS = (
    Field("_reason", Atom.STRING),
    Field("_raw", Atom.BINARY),
    Field("_origin", Atom.STRING),
    Field("_position", Atom.BIGINT),
    Field("_arrived_at", Atom.TIMESTAMP),
    Field("_batch", Atom.BIGINT),
    Field("_verdict", Atom.STRING),
)
_DAY = Field(DAY, Atom.DATE)
_JUDGED = ("_arrived_at", "_batch", "_verdict")
_BROKEN = "_broken"
_NOT_RIGHT = "a record is not as the schema says, and without batches nothing would count it"


@dataclass(frozen=True, slots=True)
class Landing:
    """How one source is parsed and judged."""

    source: Source
    records: Schema
    """The columns of a record."""

    @staticmethod
    def of(source: Source) -> Landing:
        """Prepare the landing of a source."""
        return Landing(source, Schema.parse(source.connector.schema))

    @property
    def schema(self) -> Schema:
        """The columns of a row: those of a record, and the event time if it is computed."""
        name, fields = self.source.event_time, self.records.fields
        if name is None or self.source.event_time_from is None or name in self.records.names:
            return self.records
        return Schema((*fields, Field(name, Atom.TIMESTAMP)))

    @property
    def table_schema(self) -> str:
        """The columns of the landing table, as Spark's JSON."""
        marks = (*_MARKS, *self._day, *self._bent)
        return Schema((*self.schema.with_nulls().fields, *marks)).to_json()

    @property
    def _day(self) -> tuple[Field, ...]:
        """The column that rows are partitioned by besides their verdict, if any."""
        return (_DAY,) if self.source.partition_by else ()

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The columns that the landing table is partitioned by."""
        return ("_verdict", *(field.name for field in self._day))

    @property
    def _bent(self) -> tuple[Field, ...]:
        """The column that names the columns whose values were bent, if any can be."""
        return (BENT,) if self.is_lenient else ()

    @property
    def is_lenient(self) -> bool:
        """Whether values of some columns may be written in another way than their types are."""
        codec = self.source.connector.codec
        return bool(codec.record.lenient_columns(self.records)) and codec.format != "rows"

    @property
    def shape(self) -> TableShape:
        """What the landing table looks like."""
        source = self.source
        return TableShape(
            source.name,
            self.table_schema,
            source.at,
            partition_by=self.partition_by,
            evolve=source.evolve,
            optional=(BENT.name,),
        )

    def live(self, raw: DataFrame) -> DataFrame:
        """Keep the right rows of a source that is not landed; the others are counted by verdict."""
        names = self.schema.names
        rows, judge = self.prepared(self._bare(raw), Moment())

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return (numbered(batch, names) for batch in judge(batches))

        numbers = Schema((*self.schema.with_nulls().fields, Field("_verdict", Atom.TINYINT)))
        judged = map_in_arrow(rows, work, numbers.to_ddl())
        right = F.col("_verdict") == VERDICTS.index("ok")
        if (violated := self._violated()) is not None:
            rejected = F.lit(VERDICTS.index("rejected")).cast("byte")
            verdict = F.when(right & violated.isNotNull(), rejected).otherwise(F.col("_verdict"))
            judged = judged.withColumn("_verdict", verdict)
        counted = (*VERDICTS, BLANK)
        counts = [F.count_if(F.col("_verdict") == n).alias(v) for n, v in enumerate(counted)]
        observed = judged.observe(self.source.name, F.count(F.lit(1)).alias("input"), *counts)
        return observed.where(right).select(*map(quoted, self.schema.names))

    def live_by_row(self, raw: DataFrame, *, counted: bool) -> DataFrame:
        """Keep the right rows of a source that is read without batches: by Spark alone.

        Args:
            raw: The records.
            counted: Whether the others are counted by verdict; else one of them stops the query.
        """
        right, rows = self._decoded_by_spark(raw)
        if self.source.event_time_from is not None:
            rows = rows.withColumn(*self._computed(right))
        if (column := self.source.event_time) is not None:
            right = right & quoted(column).isNotNull()
        if not counted:
            stop = F.raise_error(F.lit(_NOT_RIGHT)).cast("boolean")
            return rows.where(F.when(right, F.lit(True)).otherwise(stop)).select(
                *map(quoted, self.schema.names)
            )
        verdict = F.when(right, F.lit("ok")).otherwise("malformed")
        for broken in self._broken():
            verdict = F.when(right & broken, F.lit("rejected")).otherwise(verdict)
        judged = rows.withColumn("_verdict", verdict)
        counts = [F.count_if(F.col("_verdict") == v).alias(v) for v in VERDICTS]
        observed = judged.observe(self.source.name, F.count(F.lit(1)).alias("input"), *counts)
        return observed.where("_verdict = 'ok'").select(*map(quoted, self.schema.names))

    def _broken(self) -> Iterator[Column]:
        """The conditions under which a row is rejected."""
        if (column := self.source.event_time) is not None:
            yield quoted(column) <= F.lit(UNIX_EPOCH)
        if (violated := self._violated()) is not None:
            yield violated.isNotNull()

    def _decoded_by_spark(self, raw: DataFrame) -> tuple[Column, DataFrame]:
        """Decode records with built-in functions; return the condition of valid ones, too."""
        text = F.col("value").cast("string")
        match self.source.connector.codec.format:
            case "json":
                fields = (*self.records.with_nulls().fields, Field(_BROKEN, Atom.STRING))
                options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN}
                row = F.from_json(text, Schema(fields).to_ddl(), options)
                right = F.col("_row").isNotNull() & F.col(f"_row.{_BROKEN}").isNull()
                parsed = raw.select(row.alias("_row")).select(right.alias("_right"), "_row.*")
                return F.col("_right"), parsed
            case "text":
                name = self.records.names[0]
                right = F.coalesce(F.is_valid_utf8(text), F.lit(False))
                return F.col("_right"), raw.select(right.alias("_right"), text.alias(name))
            case _:
                return F.lit(True), raw.select(*map(quoted, self.records.names))

    def _bare(self, raw: DataFrame) -> DataFrame:
        """Drop the position of each record, unless it says where a file begins."""
        csv = self.source.connector.codec.csv
        if csv is not None and csv.reads_whole_files:
            return raw
        nowhere = {"_origin": F.lit(None).cast("string"), "_position": F.lit(None).cast("long")}
        return raw.withColumns(nowhere)

    def bound(self, greatest: int | None) -> int | None:
        """The watermark after batches with this greatest event time, in microseconds."""
        if greatest is None or self.source.watermark is None:
            return None
        return greatest - in_microseconds(self.source.watermark)

    def judge(self, raw: DataFrame, moment: Moment) -> DataFrame:
        """Turn raw records into typed rows, each with its verdict."""
        return self.judged(*self.prepared(raw, moment))

    def judged(self, rows: DataFrame, work: Work) -> DataFrame:
        """Judge rows by a function and by the rules."""
        judged = (mark for mark in _MARKS if mark.name in _JUDGED)
        marks = decoded_schema(self.schema, (*self._bent, *judged, *self._day))
        return self._reject(map_in_arrow(rows, work, marks))

    def without_spark(self, spark: SparkSession, moment: Moment) -> Work | None:
        """Make the function that decodes and judges, if the event time is read from a text.

        The verdict of a row whose text has none of the usual forms is `UNSURE`.
        """
        text = TextTime.of(self.source.event_time_from or "", self.records)
        if text is None or is_legacy(spark):
            return None
        decode, rule = self.decode(), Rule.of(self.source)
        return lambda batches: judge_texts(decode(batches), rule, moment, text)

    def prepared(self, raw: DataFrame, moment: Moment) -> tuple[DataFrame, Work]:
        """Return rows, and the function that judges them; the rules are left to Spark.

        The function decodes them, too, unless Spark must compute their event time in between.
        """
        source, decode, compute = self.source, self.decode(), None
        rule = Rule.of(source)
        if (expression := source.event_time_from) is not None:
            compute = in_arrow(expression, self.records)
            if compute is None:
                read = [*columns_read(expression, self.records, raw.sparkSession), "_reason"]
                names = decoded_names(self.schema, self._bent)
                rows = map_in_arrow(raw, lambda bs: pack(decode(bs), read), self._carried(read))
                rows = rows.withColumn(*self._computed(F.col("_reason").isNull()))
                return rows, lambda bs: judge(unpack(bs, names), rule, moment)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return judge(decode(batches), rule, moment, compute)

        return raw, work

    def _carried(self, read: Sequence[str]) -> str:
        """The columns of decoded rows that Spark reads, and the one with the others, as DDL."""
        fields = {field.name: field for field in (*self.records.fields, *_MARKS)}
        passed = (*(fields[name] for name in read), Field(CARRIED, Atom.BINARY))
        return Schema(passed).with_nulls().to_ddl()

    def _computed(self, right: Column) -> tuple[str, Column]:
        """The column of the event time, where a condition is true, and its name."""
        assert self.source.event_time is not None
        assert self.source.event_time_from is not None
        return self.source.event_time, in_spark(self.source.event_time_from, right)

    def decode(self) -> Work:
        """Make the function that decodes.

        Raises:
            SchemaError: Records of this format cannot carry the schema.
        """
        codec, schema = self.source.connector.codec, self.records
        if codec.format == "rows":
            return lambda batches: (as_decoded(batch, schema.names) for batch in batches)
        options = codec.avro or codec.csv
        return decoder(
            schema,
            format=codec.format,
            options=options,
            record=codec.record,
            number_lines=codec.number_lines,
        )

    def _reject(self, judged: DataFrame) -> DataFrame:
        if (violated := self._violated()) is None:
            return judged
        violated = F.when(F.col("_verdict") == "ok", violated)
        return judged.withColumn("_violated", violated).withColumns(
            {
                "_verdict": F.when(F.col("_violated").isNull(), F.col("_verdict")).otherwise(
                    "rejected"
                ),
                "_reason": F.coalesce("_violated", "_reason"),
            }
        )

    def _violated(self) -> Column | None:
        """The first rule that a row breaks, in words; null if it breaks none."""
        broken = [
            F.when(~F.coalesce(F.expr(condition), F.lit(False)), F.lit(f"violates {rule!r}"))
            for rule, condition in self.source.expect.rules.items()
        ]
        return F.coalesce(*broken, F.lit(None)) if broken else None
