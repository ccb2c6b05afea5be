"""A Spark cluster for tests: a standalone master and its workers on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyspark
from tests.chaos.process import Process, descendants
from tests.harness import HarnessError

from millstream.spark.java import find_java
from millstream.testing.server import free_ports, last_words

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOST = "127.0.0.1"
_STARTS_WITHIN_S = 60.0
_ANSWERS_WITHIN_S = 10.0
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Cluster:
    """A master and its workers, each a process of its own; they end with this."""

    def __init__(self, *, workers: int = 2, memory: str = "1g") -> None:
        self._count, self._memory = workers, memory
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-cluster-"))
        self._port, self._web = free_ports(2)
        self._undo = ExitStack()
        self._undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        """What to give as `--master`."""
        return f"spark://{_HOST}:{self._port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """What a driver on this machine needs besides."""
        return {"SPARK_LOCAL_IP": _HOST}

    @property
    def executors(self) -> tuple[Process, ...]:
        """The executors that run now, over all workers."""
        families = (descendants(worker.pid) for worker in self.workers)
        return tuple(p for family in families for p in family if _EXECUTOR in p.command)

    def kill_worker(self) -> None:
        """End a worker and its executors at once, as a machine that loses power does."""
        worker = self.workers.pop()
        family = descendants(worker.pid)
        worker.kill()
        for process in family:
            process.send(signal.SIGKILL)
        worker.wait()

    def __enter__(self) -> Self:
        try:
            self._start("master", "--port", str(self._port), "--webui-port", str(self._web))
            self._wait(lambda state: state["status"] == "ALIVE")
            size = ("--cores", "1", "--memory", self._memory, "--webui-port", "0")
            for number in range(self._count):
                place = str(self._folder / f"worker-{number}")
                self.workers.append(self._start("worker", *size, "-d", place, self.master))
            self._wait(lambda state: state["aliveworkers"] == self._count)
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self.workers:
            self.kill_worker()
        self._undo.close()

    def _start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        name = f"org.apache.spark.deploy.{role}.{role.capitalize()}"
        environment = {"SPARK_HOME": str(home), "JAVA_HOME": str(find_java().home)}
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [str(home / "bin/spark-class"), name, "--host", _HOST, *options],
                env={**os.environ, **environment, **self.environment},
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        self._undo.callback(process.wait)
        self._undo.callback(process.kill)
        return process

    def _wait(self, is_so: Any) -> None:
        until = time.monotonic() + _STARTS_WITHIN_S
        address = f"http://{_HOST}:{self._web}/json/"
        while True:
            try:
                with urllib.request.urlopen(address, timeout=_ANSWERS_WITHIN_S) as answer:
                    if is_so(json.load(answer)):
                        return
            except OSError:
                pass
            if time.monotonic() > until:
                message = f"the cluster does not start, see {self._log}: {last_words(self._log)}"
                raise HarnessError(message)
            time.sleep(0.1)

    @property
    def _log(self) -> Path:
        return self._folder / "cluster.log"
