"""Statements that would do more than read the tables, and a process that runs them as one query.

`python -m tests.console.hostile HOME CANARY` reads statements as JSON lines and prints what the
process of a query of the console answers to each: one process for all of them, so that the test
is quick; everything else is as in the console.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = {"time_s": 3, "rows": 1000, "bytes": 1 << 20, "memory_mb": 256, "disk_mb": 64}
CORPUS = Path(__file__).parents[1] / "resources" / "hostile.sql"

_CALLS = [
    *(f"{f}('{{file}}')" for f in ("read_csv", "read_csv_auto", "read_parquet", "read_json")),
    *(f"{f}('{{file}}')" for f in ("read_text", "read_blob", "parquet_scan", "read_json_auto")),
    *(f"{f}('{{file}}')" for f in ("read_ndjson", "sniff_csv", "parquet_metadata", "glob")),
    *("delta_scan('{file}')", "iceberg_scan('{file}')", "sqlite_scan('{file}', 't')"),
    *("postgres_scan('host=127.0.0.1', 'a', 'b')", "mysql_scan('', '', '')"),
    *("getenv('CANARY')", "current_setting('temp_directory')", "duckdb_settings()"),
    *("duckdb_secrets()", "which_secret('x', 's3')", "duckdb_tables()", "pragma_version()"),
    *("load_aws_credentials()", "http_get('http://127.0.0.1:1/')", "shell('id')"),
    *("system('touch {touched}')", "query('SELECT 1')", "query_table('t')", "nextval('s')"),
    *("reflect('java.lang.System', 'getenv', 'HOME')", "java_method('java.lang.System', 'exit')"),
    *("input_file_name()", "current_user()", "session_user()", "version()", "uuid()"),
    *("from_substrait('x')", "json_execute_serialized_sql('x')", "json_serialize_sql('SELECT 1')"),
]
_PLACES = [
    "SELECT {call}",
    "SELECT * FROM {call}",
    "SELECT upper(CAST({call} AS STRING)) FROM clean",
    "SELECT vehicle FROM clean WHERE vehicle = {call}",
    "WITH x AS (SELECT {call} AS y) SELECT * FROM x",
    "SELECT * FROM (SELECT {call} AS z) q",
    "SELECT vehicle FROM clean ORDER BY {call}",
    "SELECT count(*) FROM clean HAVING max({call}) > ''",
    "SELECT * FROM clean, LATERAL (SELECT {call})",
]
_STATEMENTS = [
    *("ATTACH '{touched}' AS a", "ATTACH '{file}' AS a (READ_ONLY)", "DETACH memory"),
    *("COPY clean TO '{touched}'", "COPY (SELECT 1) TO '{touched}' (FORMAT csv)"),
    *("COPY clean FROM '{file}'", "EXPORT DATABASE '{touched}'", "IMPORT DATABASE '{touched}'"),
    *("PRAGMA database_list", "PRAGMA enable_profiling", "PRAGMA memory_limit='100GB'"),
    *("SET enable_external_access = true", "SET lock_configuration = false", "RESET ALL"),
    *("SET GLOBAL memory_limit = '100GB'", "SET temp_directory = '{touched}'"),
    *("INSTALL httpfs", "LOAD httpfs", "FORCE INSTALL spatial", "LOAD '{file}'"),
    *("CREATE TABLE x AS SELECT 1", "CREATE VIEW x AS SELECT 1", "CREATE SECRET s (TYPE s3)"),
    *("CREATE MACRO f() AS 1", "CREATE SCHEMA s", "DROP TABLE clean", "DROP VIEW clean"),
    *("INSERT INTO clean VALUES (1)", "UPDATE clean SET vehicle = ''", "DELETE FROM clean"),
    *("TRUNCATE TABLE clean", "MERGE INTO clean USING clean b ON true WHEN MATCHED THEN DELETE"),
    *("ALTER TABLE clean ADD COLUMN x INT", "VACUUM clean", "OPTIMIZE clean", "CHECKPOINT"),
    *("CALL pragma_version()", "EXECUTE x", "PREPARE x AS SELECT 1", "BEGIN", "COMMIT"),
    *("USE memory", "EXPLAIN ANALYZE SELECT 1", "ANALYZE", "SUMMARIZE clean", "SHOW ALL TABLES"),
    *(
        "ADD JAR '{file}'",
        "ADD FILE '{file}'",
        "LIST FILES",
        "REFRESH TABLE clean",
        "CACHE TABLE t",
    ),
    *("DESCRIBE HISTORY clean", "RESTORE TABLE clean TO VERSION AS OF 0", "MSCK REPAIR TABLE t"),
    *("SELECT 1; DROP TABLE clean", "SELECT 1;;SELECT 2", "SELECT 1; ATTACH '{touched}'"),
    *(
        "SELECT * FROM '{file}'",
        'SELECT * FROM "{file}"',
        "SELECT * FROM `{file}`",
        "FROM '{file}'",
    ),
    *("SELECT * FROM clean.`{file}`", "SELECT * FROM delta.`{file}`", "TABLE '{file}'"),
    *("SELECT * FROM information_schema.tables", "SELECT * FROM pg_catalog.pg_class"),
    *("SELECT * FROM sqlite_master", "SELECT * FROM duckdb_settings", "SELECT * FROM temp.t"),
    *("SELECT * FROM `../../etc/passwd`", "SELECT * FROM `clean/../readings`", "SELECT * FROM ``"),
    *("SELECT ${{env:CANARY}}", "SELECT '${{system:user.home}}'", "SELECT $1", "SELECT ?", ":x"),
]
_TRICKS = [
    "ＳＥＬＥＣＴ * FROM clean",  # noqa: RUF001
    "SELECT * FROM сlean",  # noqa: RUF001
    "SELECT\u200b1\u200b;DROP TABLE clean",
    "SELECT\u00a01;\u00a0ATTACH '{touched}'",
    "SELECT 1 \u2028; COPY clean TO '{touched}'",
    "SELECT '\u202e' ; DROP TABLE clean --",
    "SELECT 1\x00; DROP TABLE clean",
    "SELECT 'a\x00b'",
    "\ufeffSELECT read_text('{file}')",
    "SELECT \ud83d\ude00 FROM clean".encode("utf-16", "surrogatepass").decode("utf-16"),
    "SELECT 1 /* /* */ ; ATTACH '{touched}' -- */",
    "SELECT 1 --\r; ATTACH '{touched}'",
    "SELECT $$a$$; COPY clean TO '{touched}'",
    "SELECT E'\\x27' ; DROP TABLE clean",
    "SELECT 'it''s'' ; ATTACH ''{touched}'''",
    'SELECT "a""; ATTACH \'{touched}\'; --"',
    "/*+ x */ ATTACH '{touched}'",
    "(((SELECT read_text('{file}'))))",
    "sElEcT ReAd_TeXt('{file}')",
    "SELECT `read_text`('{file}')",
    "SELECT main.read_text('{file}')",
    "SELECT system.main.read_text('{file}')",
]
_BOMBS = [
    *("SELECT count(*) FROM clean a, clean b, clean c, clean d", "SELECT repeat('x', 2000000000)"),
    *("SELECT * FROM range(1000000000000)", "SELECT explode(sequence(1, 1000000000))"),
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "SELECT " + "NOT " * 20_000 + "true",
    "SELECT " + "+".join(["1"] * 20_000),
    "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(20_000)),
    "SELECT 1 " + "UNION ALL SELECT 1 " * 5_000,
    "SELECT * FROM " + "(SELECT * FROM " * 500 + "clean" + ")" * 500,
    "SELECT vehicle LIKE '" + "%a" * 5_000 + "' FROM clean",
    "SELECT vehicle RLIKE '(a+)+$' FROM (SELECT repeat('a', 10000) || 'b' AS vehicle)",
    "SELECT a.* FROM clean a JOIN clean b ON true JOIN clean c ON true ORDER BY a.speed",
    "SELECT collect_list(a.vehicle) FROM clean a, clean b, clean c",
    "SELECT concat_ws(',', collect_list(repeat('x', 100000))) FROM clean a, clean b",
    "SELECT 10 ** 100000000, power(10, 400), factorial(2000)",
    "SELECT lpad('x', 2000000000, 'y')",
    "SELECT 'x" + "y" * 90_000 + "'",
]


def statements(file: Path, touched: Path) -> Iterator[str]:
    """Give all hostile statements, about a file to read and one to write."""
    corpus = [
        line.replace("\\n", "\n")
        for line in CORPUS.read_text().splitlines()
        if line and not line.startswith("--")
    ]
    calls = [place.format(call=call) for place, call in product(_PLACES, _CALLS)]
    for text in (*corpus, *calls, *_STATEMENTS, *_TRICKS):
        named = text.replace("{file}", str(file)).replace("{touched}", str(touched))
        yield named.replace("{tables}", str(file.parent)).replace("{{", "{").replace("}}", "}")
    yield from _BOMBS


def main() -> None:
    """Answer each line as the process of a query does."""
    from millstream.console import sql_child
    from millstream.views.json_text import to_json

    limits = {**LIMITS, "home": sys.argv[1]}
    os.environ["CANARY"] = sys.argv[2]
    # One process runs them all here, so that the time of a processor is that of all.
    sql_child.limit_process({**limits, "time_s": 300})
    for line in sys.stdin:
        began = time.monotonic()
        reply = sql_child.reply(limits, {"sql": json.loads(line)})
        took = time.monotonic() - began
        sys.stdout.write(to_json({"took_s": took, "reply": reply}) + "\n")
        sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
