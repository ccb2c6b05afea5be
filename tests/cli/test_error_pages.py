"""The examples in the pages of errors that need Spark or a home, run as they are typed.

tests/errors/test_pages.py runs those that need neither. What is run here ends with the first
message of the page: its numbers may be others, and so may the names that its fix lists.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.apps import run

from millstream.errors import MillstreamError
from millstream.errors.catalogue import exit_code, pages
from millstream.errors.page import read_page
from millstream.lake.delta import FencedTable
from millstream.lake.home import Home
from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from tests.cli.conftest import Outcome

    from millstream.errors.page import Page
    from millstream.testing import Script

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOME = Path(".millstream/shop")
SHOP = """\
import millstream as ms

app = ms.App("shop")


@app.source()
def orders():
    return ms.Memory("item STRING, price DOUBLE")


app.sql("paid", "SELECT item, price FROM orders")
app.sql("by_item", "SELECT item, count(*) AS n FROM paid GROUP BY item", mode="update", key="item")
"""


def blocks(page: Page, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.text) if found == language]


def commands(page: Page) -> list[str]:
    """Return what a page says to type."""
    lines = "".join(blocks(page, "sh")[:1]).splitlines()
    return [line.removeprefix("$ ").strip() for line in lines]


SHOWN = {
    "needs a server": """
        BROKER_LOST BROKER_UNREACHABLE CONSOLE_ADDRESS CONSOLE_BODY CONSOLE_BUSY CONSOLE_HOST
        CONSOLE_ORIGIN CONSOLE_READ_ONLY CONSOLE_ROLE CONSOLE_TOKEN SQL_CANCELLED
        LOOKUP_VALUE PORT_TAKEN RECEIVER_FAILED RECORDS_LOST ROW_MISSING SOCKET_CLOSED
        SOCKET_UNREACHABLE STORE_AHEAD STORE_COLUMN_MISSING STORE_COLUMN_REQUIRED
        STORE_COLUMN_TYPE STORE_FAILED STORE_KEY STORE_LOGIN STORE_RESTORED STORE_TAKEN
        STORE_UNREACHABLE TOPIC_MISSING TRANSACTION_HANGS""",
    "needs another driver, or one that dies": """
        ALREADY_RUNNING BATCH_NOT_BEGUN DRIVER_ELSEWHERE DRIVER_FOREIGN DRIVER_LOST
        DRIVER_STILL_RUNNING HOME_GONE HOME_LOCKED INBOX_CLOSED MAINTENANCE_WAITS OVERTAKEN
        PYTHON_DIED PYTHON_MEMORY QUERY_STOPPED""",
    "needs another machine: its Java, jars, packages, disk or pace": """
        EXTRA_MISSING FOREIGN_SESSION JAR_CHECKSUM JAR_UNAVAILABLE JAVA_MISSING JAVA_VERSION
        PYTHON_LATE PYTHON_MODULE_MISSING SERVICE_MISSING SERVICE_START
        SPARK_START STORAGE_FULL TASK_SLOTS UNEXPECTED""",
    "needs the home of another app": """
        COLUMNS_DIFFER EVENT_TIME_UNBOUNDED FRONTIER_PASSED HISTORY_GONE READER_NOT_REGISTERED
        SOURCE_TABLE TABLE_CHANGES""",
    "needs a backup, or a home that forgets rows": """
        BACKUP_TAKEN FORGET_CONDITION FORGET_NOT_AGREED FORGET_READERS NO_BACKUP""",
    "needs damage, or an input that changes while it is read": """
        CHECKPOINT_DAMAGED CHECKPOINT_LOST HISTORY_UNWRITABLE LANDING_UNBALANCED
        MODEL_UNREADABLE REFERENCE_COLUMNS REPAIR_NOT_AGREED
        TABLE_NOT_TRANSLATED TABLE_RESTORED""",
    "needs rows of its own, or takes long": """
        EXPECTATION_FAILED EXPRESSION_FAILED INPUTS_CHANGED KEY_NOT_UNIQUE LATE_ROWS LIVE_IN_BATCH
        NOT_DETERMINISTIC NOT_PREFIX_CONSISTENT PATTERN_UNBOUNDED ROWS_BEHIND SKEWED_KEY
        ROLLBACK_NOT_AGREED SPARK_FAILED SQL_OVER_LIMIT UDF_RAISED UNKNOWN_STATE""",
    "shows a functional program, which is no app": """
        DSTREAM_ARGUMENT DSTREAM_CHANGED DSTREAM_FUNCTION DSTREAM_NO_OUTPUT DSTREAM_NO_RDD
        DSTREAM_RAISED DSTREAM_REFUSED DSTREAM_STATE DSTREAM_STATE_OF_KEY DSTREAM_WINDOW""",
    "shows one call, or one function of an app": """
        BACKTEST_TIME CONTRACT_BROKEN EMITTED_ROW LOOKUP_REFUSED MODEL_COLUMN
        MODEL_OPTION NOTHING_SERVED
        NOTHING_TO_BACKTEST NOT_SAMPLED NOT_SERVED REACTION_RAISED ROWS_OF_NO_SOURCE SCORE_REFUSED
        SINK_RAISED
        STATEFUL_COLUMN STATEFUL_RAISED STATEFUL_TIME STATEFUL_UNBOUNDED STATE_CHANGED STATE_VALUE
        TIMER_REFUSED UNKNOWN_VERSION""",
}
"""Pages whose example is only shown, and why; each is raised by another test."""
NOT_RUN = {code for codes in SHOWN.values() for code in codes.split()}
STORED = {
    "COLUMN_ADDED": "id BIGINT",
    "COLUMN_DROPPED": "id BIGINT, item STRING",
    "LAYOUT_CHANGED": "id BIGINT, day DATE",
    "SCHEMA_CHANGED": "id BIGINT, price DOUBLE",
}
"""The columns that the table of a page has from an earlier run."""
CHECKED = [
    page
    for page in pages()
    if commands(page) == ["millstream check app.py"]
    and blocks(page, "python")
    and page.code not in NOT_RUN
]


def is_said(page: Page, printed: str) -> bool:
    """Whether the first message of a page is printed: its first line, and its place."""
    what, *rest = blocks(page, "text")[0].splitlines()
    places = [line for line in rest if line.startswith("  at:  ")]
    return digits(what) in digits(printed) and all(place in printed for place in places)


def digits(text: str) -> str:
    return re.sub(r"\d+", "0", text)


@pytest.mark.spark
@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.code)
def test_check_finds_what_the_app_of_a_page_is_refused_for(
    page: Page, spark: SparkSession, tmp_path: Path, millstream: Callable[..., Outcome]
) -> None:
    Path("app.py").write_text(blocks(page, "python")[0])
    if page.code in STORED:
        schema = spark.createDataFrame([], STORED[page.code]).schema.json()
        FencedTable.create(Home.at(HOME).table("paid"), schema=schema)

    outcome = millstream("check", "app.py")

    assert is_said(page, outcome.out.replace(str(tmp_path), "…")), outcome.out
    assert outcome.code == (0 if page.warning else exit_code(page.kind))


def other_app() -> None:
    Path("fleet.py").write_text(Path("app.py").read_text().replace('"shop"', '"fleet"'))


def other_answer() -> None:
    text = Path("app.py").read_text()
    Path("app.py").write_text(
        text.replace("SELECT item, price FROM", "SELECT item, 1.5D AS price FROM")
    )


def fresh_home() -> None:
    shutil.rmtree(HOME)
    with Path("app.py").open("a") as file:
        file.write('app.sql("daily", "SELECT item FROM paid")\n')


def newer_home() -> None:
    manifest = json.loads((HOME / "manifest").read_text())
    (HOME / "manifest").write_text(json.dumps(manifest | {"format": 2, "version": "0.3.0"}))


def damaged_home() -> None:
    (HOME / "manifest").write_text("")


def taken_folder() -> None:
    Path("shop").mkdir()
    Path("shop/app.py").touch()


def nothing() -> None:
    """Leave the home as the run has left it."""


STORED_HOME: dict[str, Callable[[], None]] = {
    "AMBIGUOUS_COLUMN": nothing,
    "FOLDER_TAKEN": taken_folder,
    "HOME_DAMAGED": damaged_home,
    "HOME_NEWER": newer_home,
    "HOME_OTHER_APP": other_app,
    "REBUILD_REFUSED": nothing,
    "SELECTION_WITHOUT_APP": nothing,
    "SQL_FAILED": nothing,
    "SQL_NOT_READING": nothing,
    "SQL_NOT_TRANSLATED": nothing,
    "SQL_SYNTAX": nothing,
    "UNKNOWN_ALERT": nothing,
    "UNKNOWN_COLUMN": nothing,
    "UNKNOWN_MOMENT": nothing,
    "UNKNOWN_NOTICE": nothing,
    "UNKNOWN_SELECTION": nothing,
    "UNKNOWN_TABLE": nothing,
}
"""What is done to a home with tables, before the command of a page is typed; none needs Spark."""
RUN_HOME: dict[str, Callable[[], None]] = {
    "CHECKPOINT_RESET": nothing,
    "NOTHING_LANDED": fresh_home,
    "NOT_EQUAL": other_answer,
    "SPARK_REFUSED_SQL": nothing,
    "SQL_NOT_ALLOWED": nothing,
}
"""The same to the home of an app that has run."""


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an app that has run."""
    place = tmp_path_factory.mktemp("ran")
    (place / "app.py").write_text(SHOP)
    app = load(str(place / "app.py"))
    [orders] = app.graph.sources
    memory: Any = orders.connector
    memory.add({"item": "tea", "price": 2.0})
    run(app, place / HOME)
    return place


@pytest.mark.parametrize("code", STORED_HOME)
def test_a_command_on_tables_is_refused_as_the_page_says(
    code: str, tmp_path: Path, millstream: Callable[..., Outcome]
) -> None:
    Path("app.py").write_text(SHOP)
    home = Home.at(HOME)
    home.prepare("shop", sources=["orders"])
    rows = pa.table({"item": ["tea"], "price": [2.0]})
    for name in ("orders", "paid", "by_item"):
        write_deltalake(str(home.table(name)), rows)
    STORED_HOME[code]()

    assert_refused(read_page(code), tmp_path, millstream)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("code", RUN_HOME)
def test_a_command_on_a_home_of_a_run_is_refused_as_the_page_says(
    code: str, ran: Path, tmp_path: Path, millstream: Callable[..., Outcome]
) -> None:
    shutil.copytree(ran, tmp_path, dirs_exist_ok=True)
    RUN_HOME[code]()

    assert_refused(read_page(code), tmp_path, millstream)


def assert_refused(page: Page, folder: Path, millstream: Callable[..., Outcome]) -> None:
    """Type the commands of a page, and expect its message."""
    for text in blocks(page, "python"):
        Path("app.py").write_text(text)
    printed, last = "", None
    for command in commands(page):
        name, *words = shlex.split(command)
        if name == "rm":
            shutil.rmtree(words[-1])
        else:
            # A run would go on with what the error does not stop.
            outcome = millstream(*words, *(["--once"] if words[0] == "run" else []))
            printed, last = printed + outcome.out + outcome.err, outcome.code

    assert is_said(page, printed.replace(str(folder), "/srv/shop")), printed
    assert last == exit_code(page.kind)


SCRIPTED = (
    *("CLOCK_BACKWARDS", "CRASH_NOT_REACHED", "DRIVER_DEAD", "UNKNOWN_CRASH_POINT"),
    "UNKNOWN_IN_SCRIPT",
)


@pytest.mark.parametrize("code", SCRIPTED)
def test_the_script_of_a_page_is_refused(code: str, stream: Callable[..., Script]) -> None:
    page, names = read_page(code), dict[str, Any]()
    exec(compile(blocks(page, "python")[0], f"{code}.md", "exec"), names)
    [test] = [value for name, value in names.items() if name.startswith("test_")]

    with pytest.raises(MillstreamError) as caught:
        test(stream, ordering())

    assert is_said(page, str(caught.value)), str(caught.value)


def ordering() -> Any:
    import millstream as ms

    app = ms.App("shop")

    @app.source()
    def orders() -> ms.Memory:
        return ms.Memory("id BIGINT, at TIMESTAMP")

    app.sql("paid", "SELECT id FROM orders", expect={"id is given": "id IS NOT NULL"})
    return app


def test_every_example_is_run_or_listed_with_the_reason_why_not() -> None:
    elsewhere = {page.code for page in pages() if blocks(page, "console")}
    here = {*(page.code for page in CHECKED), *STORED_HOME, *RUN_HOME, *SCRIPTED}

    assert sum(len(codes.split()) for codes in SHOWN.values()) == len(NOT_RUN)
    assert not (elsewhere | here) & NOT_RUN
    assert {page.code for page in pages()} - elsewhere - here - NOT_RUN == set(), (
        "have a page show a command without Spark in a `console` block, or list it in SHOWN"
    )


def test_what_a_page_only_shows_another_test_raises() -> None:
    pages_alone = {Path(__file__), ROOT / "tests/errors/test_pages.py", ROOT / "docs/errors.md"}
    files = {*ROOT.glob("tests/**/*.py"), *ROOT.glob("docs/**/*.md")} - pages_alone
    text = "\n".join(file.read_text() for file in files)

    shown = sorted(NOT_RUN & {page.code for page in pages()})
    assert [code for code in shown if not re.search(rf"\b{code}\b", text)] == []
