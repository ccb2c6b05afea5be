from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

LOAD = """
import sys
from millstream.loading import load_without_spark
app = load_without_spark("app.py")
print("pyspark" in sys.modules, *app.graph.datasets)
"""
HEAD = """\
import millstream as ms
import pyspark.sql.functions as G
from pyspark.sql import DataFrame, functions as F, types as T
app = ms.App("shop")
"""
PAID = """
@app.table()
def paid(orders: DataFrame) -> "DataFrame": return orders.where(F.col("id") > G.lit(1))
"""
ORDERS = """
@app.source()
def orders(): return ms.Memory("id BIGINT")
"""


def loaded(text: str, place: Path) -> str:
    (place / "app.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", LOAD], capture_output=True, text=True, check=False, cwd=place
    )
    return done.stdout.strip() or done.stderr.strip()


def test_an_app_that_only_names_pyspark_is_read_without_it(tmp_path: Path) -> None:
    assert loaded(HEAD + ORDERS + PAID, tmp_path) == "False orders paid"


def test_a_module_beside_the_app_that_names_pyspark_is_read_without_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("from pyspark.sql.types import StructType\n")

    assert loaded(HEAD + "import beside\n" + ORDERS, tmp_path) == "False orders"


@pytest.mark.parametrize(
    "use",
    [
        'schema = T.StructType().add("id", T.LongType())\nassert schema.fieldNames() == ["id"]',
        "from pyspark.sql.types import *\nassert LongType().typeName() == 'long'",
        "class Mine(T.StructType): pass\nassert issubclass(Mine, T.DataType)",
        "assert isinstance(T.LongType(), T.DataType)",
        "def f(rows: DataFrame | None) -> None: ...\nassert f.__annotations__",
        "import pyspark\nassert pyspark.__version__[0].isdigit()",
        "@F.udf(T.StringType())\ndef f(x): return x",
        "from pyspark import StorageLevel\nassert StorageLevel.DISK_ONLY.useDisk",
    ],
)
def test_what_an_app_uses_of_pyspark_while_it_is_read_is_the_real_thing(
    use: str, tmp_path: Path
) -> None:
    assert loaded(f"{HEAD}{use}\n{ORDERS}", tmp_path) == "True orders"


def test_what_goes_wrong_with_something_that_is_not_real_yet_is_tried_with_the_real_thing(
    tmp_path: Path,
) -> None:
    use = "from pyspark.serializers import CPickleSerializer as S\nassert S == S and {S: 1}\nS < 3"

    told = loaded(HEAD + use + ORDERS, tmp_path)

    assert "'<' not supported between instances of 'type' and 'int'" in told


def test_a_schema_given_as_an_object_is_read_as_it_is(tmp_path: Path) -> None:
    orders = ORDERS.replace('"id BIGINT"', 'T.StructType([T.StructField("id", T.LongType())])')
    show = LOAD + "print(app.faults, app.graph.sources[0].connector.schema)"
    (tmp_path / "app.py").write_text(HEAD + orders)

    done = subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert "() StructType([StructField('id', LongType(), True)])" in done.stdout
