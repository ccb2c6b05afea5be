"""The delivery of alerts, driven through chance as often as wanted.

python -m tests.alert.long --runs 300 --seed 1
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.alert.course import Outcome, run_course


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    total, began = Outcome(), time.monotonic()
    for seed in range(given.seed, given.seed + given.runs):
        with tempfile.TemporaryDirectory() as folder:
            found = run_course(Path(folder) / "home", seed)
        if found.lost or found.rekeyed or found.by_zombies or found.untold:
            why = f"seed {seed}: {found}"
            raise SystemExit(why)
        total.plus(found)
    took = time.monotonic() - began
    print(f"{given.runs} runs in {took:.0f} s: {total}")  # noqa: T201


if __name__ == "__main__":
    main()
