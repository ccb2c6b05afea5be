"""Words are counted alike, whether a server sends them, files hold them or a batch reads them."""

from __future__ import annotations

import re
import runpy
import socket
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from pyspark.sql import SparkSession

    from millstream.testing import Script

APP = Path(__file__).with_name("app.py")
LINES = ["The mill, the stream", "", "don't stop; the mill's wheel goes round", "ÜBER 7 über"]
COUNTED = Counter(re.findall(r"[^\W_]+(?:'[^\W_]+)*", " ".join(LINES).lower()))


def test_words_are_counted_whatever_their_case_across_batches_and_a_crash(
    stream: Callable[..., Script],
) -> None:
    with stream(load(str(APP))) as s:
        s.send("lines", LINES[0])
        s.batch()
        assert s.table("counts").rows() == [("mill", 1), ("stream", 1), ("the", 2)]

        s.send("lines", *LINES[2:])
        s.crash(after="sink_commit", query="counts")
        s.restart()
        s.drain()

        assert dict(s.table("counts").rows()) == COUNTED
        first = sorted(COUNTED.items(), key=lambda counted: (-counted[1], counted[0]))[:10]
        assert dict(s.table("top_words").rows()) == dict(first)
        s.assert_consistent()


def test_batch_is_stream_is_replay(spark: SparkSession) -> None:
    said = [line for line in LINES if line]

    assert_prefix_consistent(load(str(APP)), said, runs=2, spark=spark)


def test_a_server_and_files_with_the_same_lines_give_the_same_counts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = runpy.run_path(str(APP.with_name("feed.py")))["send"]
    live = load(str(APP))
    with socket.create_server(("localhost", 0)) as server:
        profile = f"[profile.test.sources.lines]\nport = {server.getsockname()[1]}\n"
        (tmp_path / "millstream.toml").write_text(profile)
        live.choose("test", beside=tmp_path)
        feeding = threading.Thread(
            target=send, args=(server, LINES), kwargs={"pause_s": 0.1}, daemon=True
        )
        feeding.start()
        live.start(home=tmp_path / "live")
        until = time.monotonic() + 300
        while live.read("counts").groupBy().sum("times").first() != (COUNTED.total(),):
            assert time.monotonic() < until, live.read("counts").collect()
            time.sleep(0.5)
        live.stop()
        feeding.join()

    (tmp_path / "said.txt").write_text("\n".join(LINES))
    monkeypatch.setenv("TEXTS", str(tmp_path / "*.txt"))
    files = load(str(APP), "texts")
    files.run(home=tmp_path / "files", once=True)

    for app in (live, files):
        assert dict(app.read("counts").collect()) == COUNTED
