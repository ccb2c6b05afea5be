"""`millstream query`: SQL on the tables of an app, without Spark unless it is asked for."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.answer import Output
from millstream.cli.option import HomeDir, Json, Master, ProfileName, length_of_time
from millstream.cli.prompt import Prompt
from millstream.errors import fault

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.sql.answer import Engine
    from millstream.sql.limits import Limits


class EngineName(StrEnum):
    """What answers a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"


def query(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    app: Annotated[
        str | None, typer.Argument(metavar="[APP]", help="The app file or folder.")
    ] = None,
    sql: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="One SELECT; without it, a prompt.")
    ] = None,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    engine: Annotated[
        EngineName, typer.Option("--engine", help="What runs the query; spark knows more of SQL.")
    ] = EngineName.DUCKDB,
    master: Master = None,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="Stop a query after this time.")
    ] = "5 minutes",
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory that the engine may use.")
    ] = "2 GB",
    temp_disk: Annotated[
        str, typer.Option(metavar="SIZE", help="Temporary files that DuckDB may write.")
    ] = "8 GB",
    max_rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Rows to print at most.")
    ] = 100_000,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the rows as CSV; - is the output.")
    ] = None,
    parquet: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the rows as Parquet.")
    ] = None,
    json: Json = False,
) -> None:
    """Query the tables of an app with SQL."""
    from millstream.loading import find_home
    from millstream.sql.duckdb_query import DuckDBEngine
    from millstream.sql.limits import Limits, limited_process

    if sql is None and app is not None and not is_app(app):
        app, sql = None, app
    limits = Limits(
        time=length_of_time("--timeout", timeout),
        rows=max_rows,
        memory_mb=_size("--memory", memory),
        disk_mb=_size("--temp-disk", temp_disk),
    )
    output = Output(rows=max_rows, json=json, csv=csv, parquet=parquet)
    output.verify(sql)
    place = find_home(app, home, profile)
    place.verify_in_use()
    is_spark = engine is EngineName.SPARK
    with nullcontext() if is_spark else limited_process(limits.memory_mb):
        opened = _open_spark(place, limits, master) if is_spark else DuckDBEngine(place, limits)
        if sql is None:
            Prompt(place, opened, output, context.obj).run()
        else:
            output.answer(place, opened, sql)


def is_app(word: str) -> bool:
    """Whether a word alone is an app, not SQL.

    >>> is_app("app.py"), is_app("shop"), is_app("SELECT 1"), is_app("VALUES(1)")
    (True, True, False, False)
    """
    return os.path.exists(word) or not re.search(r"[\s(;]", word)


def _size(option: str, text: str) -> int:
    from millstream.sql.limits import parse_size

    try:
        return parse_size(text)
    except ValueError:
        expected = "a size such as 500MB or 2GB"
        raise fault("ARGUMENT_REFUSED", option=option, value=text, expected=expected) from None


def _open_spark(home: Home, limits: Limits, master: str | None) -> Engine:
    from millstream.cli.quiet import open_quiet_session
    from millstream.settings import resolve_master
    from millstream.sql.limits import LEAST_OF_SPARK_MB, size_text
    from millstream.sql.spark_query import SparkEngine

    memory = limits.memory_mb
    if memory < LEAST_OF_SPARK_MB:
        expected = f"at least {size_text(LEAST_OF_SPARK_MB)} for --engine spark"
        raise fault(
            "ARGUMENT_REFUSED", option="--memory", value=size_text(memory), expected=expected
        )
    # What is read from Spark's JVM is there twice for a moment.
    conf = {
        "spark.driver.memory": f"{memory}m",
        "spark.driver.maxResultSize": f"{memory // 4}m",
    }
    spark = open_quiet_session("query", resolve_master(master).value, conf=conf, log_dir=home.logs)
    return SparkEngine.open(spark, home, limits)
