"""What Spark refuses most often, and what to write instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import PySparkAttributeError, PySparkException
from pyspark.sql import DataFrame

from millstream.errors import closest, fault
from millstream.spark.message import message_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.errors import Location, MillstreamError

_RECOMPUTED = "a mode='complete' table that reads a mode='update' table is computed as a batch"
_LOOK = "to look at rows, use `millstream show NAME`, or app.preview('NAME') in a notebook"

_BY_CONDITION: Mapping[str, str] = {
    "AMBIGUOUS_REFERENCE": "drop or rename the column on one side before the join "
    "(.withColumnRenamed(…)), or join on='column', which keeps one of the two",
    "CALL_ON_STREAMING_DATASET_UNSUPPORTED": "return the DataFrame: @app.table stores it, "
    "@app.serve(to=…) writes it elsewhere",
    "CANNOT_CONVERT_COLUMN_INTO_BOOL": "write (a > 1) & (b > 2), | and ~ for columns, "
    "not and, or, not; for a choice F.when(…).otherwise(…), not if",
    "DATATYPE_MISMATCH.CAST": "there is no such cast: take a field of it, or convert it by a "
    "function, such as F.unix_timestamp(…)",
    "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN": "compare it with something: a condition is true or "
    "false",
    "DATATYPE_MISMATCH": "cast one of them, such as F.col('x').cast('double'); numbers of seconds "
    "become a time by F.timestamp_seconds(…), text by F.to_timestamp(…)",
    "INCOMPATIBLE_COLUMN_TYPE": "select the columns of both in the same order, or use "
    ".unionByName(…); cast those whose types differ",
    "INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY": "join the two instead: ms.join_within(…) for "
    "two streams, ms.reference(…) for a table that is looked up",
    "INVALID_WHERE_CONDITION": "aggregate first, then filter the answer: "
    ".groupBy(…).agg(…).where(…), or HAVING in SQL",
    "MISSING_AGGREGATION": "group by the column as well, or aggregate it, such as max(…)",
    "MISSING_GROUP_BY": "add GROUP BY with the columns that are not aggregated",
    "NESTED_AGGREGATE_FUNCTION": "make the inner aggregate a mode='update' table of its own; "
    + _RECOMPUTED,
    "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING": "for the first or greatest rows of each group "
    "use ms.top_k(…), for earlier rows of a key @ms.stateful, for windows of time F.window(…); "
    + _RECOMPUTED
    + ", where it is allowed",
    "NUM_COLUMNS_MISMATCH": "select the same columns of both, or use "
    ".unionByName(…, allowMissingColumns=True)",
    "PARSE_SYNTAX_ERROR": "correct the text of the SQL, or of the type, at this line",
}
"""By the beginning of Spark's error condition; the longest that fits counts."""

_BY_PHRASE: Mapping[str, str] = {
    "Redefining watermark": "remove this withWatermark and use the event time of the source; or, "
    "for another event time, drop the source's from the table that is read here",
    "More than one event time columns": "drop all but one of these columns from that input before "
    "the join; a window made from the event time is an event time as well",
    "streaming aggregations without watermark": "give the source event_time='at', "
    "watermark='10 minutes' and group by F.window('at', …); or keep the newest answer of each key: "
    "mode='update', key=[…]",
    "session window streaming aggregations": "leave mode='update' out: a session is written once, "
    "when the watermark has passed its end",
    "Global aggregation with session window": "group by a key as well, such as "
    ".groupBy(F.session_window(…), 'user')",
    "no streaming aggregations": "leave mode='complete' out: only an aggregate is rewritten as a "
    "whole",
    "dropDuplicatesWithinWatermark": "give the source event_time='at', watermark='10 minutes', and "
    "use ms.dedup(…)",
    "Distinct aggregations": "use F.approx_count_distinct(…); or, to count exactly, keep one row "
    "for each value in a mode='update' table; " + _RECOMPUTED + ", where it is allowed",
    "Sorting is not supported": "sort where the answer is read: `millstream query … ORDER BY`; for "
    "the greatest rows use ms.top_k(…); an aggregate with mode='complete' may be sorted",
    "Limits are not supported": "use ms.top_k(…) for the greatest rows of each group; "
    + _RECOMPUTED
    + ", where it is allowed",
    "Offset is not supported": "limit where the answer is read: `millstream query … LIMIT 10`",
    "Sampling is not supported": "choose by a column, so that a retry chooses the same rows: "
    ".where(F.pmod(F.xxhash64('id'), F.lit(10)) == 0)",
    "possible 'correctness' issue": "make the first of the two a table of its own with "
    "mode='update', key=[…]; " + _RECOMPUTED + "; or use mode='append' with windows in both",
    "Stream-stream": "use ms.join_within(left, right, on=…, within='1 hour', how='left'), which "
    "bounds how long a row is waited for; both sources need an event time and a watermark",
    "LeftAnti joins with": "use ms.join_within(…, how='left') and keep the rows without a partner; "
    "or ms.absent(…) for what did not follow in time",
    "static DataFrame": "keep the rows of the stream, not of the static side: "
    "stream.join(static, on=…, how='left')",
    "Except on": "use ms.join_within(…, how='left') and keep the rows without a partner; "
    "for rows that were there before ms.dedup(…)",
    "Intersect of": "use ms.join_within(…), which keeps the rows that have a partner",
    "Union between": "make the other rows a source of their own, such as ms.Files(…), and union "
    "the two streams; to look rows up, join ms.reference(…)",
    "pivot is not supported": "name the values: .pivot('kind', ['a', 'b'])",
    "Multiple time/session window": "make a table for each window, or group by one and compute the "
    "wider one from its answer",
    "applyInPandasWithState in": "declare the table in the same mode as applyInPandasWithState(…); "
    "or use @ms.stateful, which runs in append mode",
    "must be executed with writeStream": "leave count(), show(), collect(), toPandas(), cache() "
    "and .rdd out: the function describes the query and returns it; " + _LOOK,
    "Queries without streaming sources": "make the answer from the parameters of the function: "
    "they are the streams",
}
"""By a phrase of Spark's sentence, for refusals whose condition says nothing."""

_ADVICE = re.compile(r" (?:You can set the config|Please refer|If necessary set) .*")
"""Where Spark's sentence begins to name settings that Millstream chooses itself."""
_NAME = "`(?P<name>[^`]+)`"
_UNKNOWN_FUNCTION = re.compile(f"routine {_NAME}")


def refused(name: str, error: PySparkException, at: Location) -> MillstreamError:
    """Return the error of a query that Spark refuses: in Spark's words, with what to do instead."""
    condition, cause = error.getCondition() or type(error).__name__, message_of(error)
    # Names such as _LEGACY_ERROR_TEMP_3102 are of use to nobody.
    shown = "" if condition.startswith("_") else f" ({condition})"
    return fault(
        "QUERY_REFUSED",
        at=at,
        dataset=name,
        condition=shown,
        cause=_ADVICE.sub("", cause),
        instead=_found(error) or "correct the query; `millstream check` tries it without data",
    )


def raised(name: str, error: Exception, at: Location, columns: Sequence[str]) -> MillstreamError:
    """Return the error of a function that raised while it built its query."""
    instead = "correct the function: it is called with DataFrames, to build the query"
    if isinstance(error, PySparkAttributeError):
        facts = error.getMessageParameters() or {}
        nearest = closest(facts.get("attr_name", ""), {*columns, *dir(DataFrame)})
        instead = f"{nearest}columns are {', '.join(columns)}"
    elif isinstance(error, PySparkException):
        instead = _found(error) or instead
    cause = f"{type(error).__name__}: {error}"
    return fault("FUNCTION_RAISED", at=at, dataset=name, cause=cause, instead=instead)


def _found(error: PySparkException) -> str | None:
    """Find what to write instead of what Spark refuses."""
    condition, cause = error.getCondition() or "", message_of(error)
    if condition.startswith("UNRESOLVED_COLUMN"):
        return _other_column(error)
    if condition.startswith("UNRESOLVED_ROUTINE") and (unknown := _UNKNOWN_FUNCTION.search(cause)):
        return f"{closest(unknown['name'], _functions())}functions are those of Spark SQL"
    prefixes = sorted((p for p in _BY_CONDITION if condition.startswith(p)), key=len)
    if prefixes:
        return _BY_CONDITION[prefixes[-1]]
    fixes = (fix for phrase, fix in _BY_PHRASE.items() if phrase in cause)
    return next(fixes, None)


def _other_column(error: PySparkException) -> str:
    facts = error.getMessageParameters() or {}
    known = re.findall(r"`([^`]+)`(?=,|$)", facts.get("proposal", ""))
    nearest = closest(facts.get("objectName", "").strip("`"), known)
    return f"{nearest}columns are {', '.join(known)}" if known else "select it before, or drop it"


def _functions() -> list[str]:
    from pyspark.sql import functions

    return [name for name in dir(functions) if name.islower()]
