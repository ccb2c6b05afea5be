"""Write an access log like that of a web server, in files; the same seed gives the same log.

    python examples/weblog/traffic.py build/weblog

One line in a hundred is five minutes late, one is truncated, one has a status that does not exist.
"""

import argparse
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2016, 12, 6, 8, 58, tzinfo=UTC)
PAGES = ("/", "/cart", "/codemove/TTCENCUFMH3C", "/help?from=mail", "/login", "/search?q=mill")


def lines(count: int, seed: int) -> Iterator[str]:
    """Generate lines, ten a second."""
    dice = random.Random(seed)
    for number in range(count):
        fate = dice.randrange(100)
        late = timedelta(minutes=5) if fate == 0 else timedelta()
        at = (START + timedelta(seconds=number / 10) - late).isoformat(timespec="milliseconds")
        status = 999 if fate == 1 else dice.choice((200, 200, 200, 200, 304, 404, 500))
        seconds = round(dice.expovariate(20), 3)
        ip = f"37.139.{dice.randrange(10)}.{dice.randrange(256)}"
        line = f"{at.replace('+00:00', '+0000')} {ip} {status} GET {dice.choice(PAGES)} {seconds}"
        yield line[: dice.randrange(1, 40)] if fate == 2 else line


def write(folder: Path, count: int, *, seed: int, lines_per_file: int) -> None:
    """Write the files in order of age; each becomes visible only when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    made = list(lines(count, seed))
    for number, first in enumerate(range(0, count, lines_per_file)):
        hidden = folder / ".next"
        hidden.write_text("".join(f"{line}\n" for line in made[first : first + lines_per_file]))
        os.utime(hidden, (0, START.timestamp() + number))
        hidden.replace(folder / f"access-{number:05d}.log")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=7)
    said = parser.parse_args()
    write(said.folder, said.lines, seed=said.seed, lines_per_file=600)
