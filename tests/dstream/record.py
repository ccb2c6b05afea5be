"""Record what pyspark.streaming answers, for tests that compare ours with it.

python -m tests.dstream.record
python -m tests.dstream.record --only hashtags running_count
"""

from __future__ import annotations

import argparse
import json
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.dstream.program import written
from tests.dstream.programs import output, refusals, stateless, window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from pyspark import SparkContext
    from tests.dstream.program import Outputs, Program

PROGRAMS: dict[str, Program] = {
    program.name: program for program in (*stateless.PROGRAMS, *window.PROGRAMS, *output.PROGRAMS)
}
REFUSALS = {refusal.__name__: refusal for refusal in refusals.REFUSALS}
FAILURES = {program.name: program for program in refusals.FAILURES}
RECORDED = Path(__file__).with_name("recorded.json")


def answers(program: Program, run: Callable[[Program], Outputs]) -> dict[str, Any]:
    """What a program gives, as it is recorded."""
    return written(run(program), program.ordered)


def refused(api: ModuleType, sc: SparkContext, name: str) -> list[str]:
    """The kind of error that an engine raises, and the first line of its message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        ssc = api.StreamingContext(sc, 1)
        try:
            REFUSALS[name](api, ssc)
        except Exception as error:
            found = [kind.__name__ for kind in type(error).__mro__[:-3]]
            return [*found, str(error).strip().partition("\n")[0]]
        finally:
            for each in (api.StreamingContext.getActive(), ssc):
                if each is not None:
                    each.stop(stopSparkContext=False)
    return ["nothing is refused"]


def failed(program: Program, run: Callable[[Program], Outputs]) -> list[str]:
    """The kind of error that a program with a function that raises ends with."""
    try:
        run(program)
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__[:-3]]
    return ["nothing is raised"]


def record(only: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
    """Run on pyspark.streaming what is named, or everything."""
    import pyspark.streaming
    from tests.dstream.spark_engine import run_program, spark_context

    wanted = {*only} or {*PROGRAMS, *REFUSALS, *FAILURES}
    found: dict[str, dict[str, Any]] = {"programs": {}, "refusals": {}, "failures": {}}
    with spark_context() as sc:
        run = partial(run_program, sc)
        found["refusals"] |= {
            name: refused(pyspark.streaming, sc, name) for name in REFUSALS if name in wanted
        }
        found["failures"] |= {
            name: failed(failure, run) for name, failure in FAILURES.items() if name in wanted
        }
        found["programs"] |= {
            name: answers(program, run) for name, program in PROGRAMS.items() if name in wanted
        }
    return found


def recorded() -> dict[str, dict[str, Any]]:
    """What was recorded."""
    found: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="programs to record anew")
    parser.add_argument("--check", action="store_true", help="compare with what is recorded")
    given = parser.parse_args()
    if given.check:
        assert record() == recorded(), "pyspark.streaming gives other answers"
        return
    only = given.only
    before = recorded() if RECORDED.exists() and only else {}
    found = {kind: before.get(kind, {}) | new for kind, new in record(only).items()}
    lines = (
        f"{json.dumps(kind)}: {{\n"
        + ",\n".join(f"  {json.dumps(n)}: {json.dumps(a)}" for n, a in sorted(named.items()))
        + "\n}"
        for kind, named in found.items()
    )
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
