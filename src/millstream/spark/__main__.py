"""`python -m millstream.spark`: prepare this machine, so that later starts are quick."""

from __future__ import annotations

import sys

from millstream.errors import MillstreamError
from millstream.spark.session import prepare


def _print(subject: str, fact: str) -> None:
    sys.stdout.write(f"  {subject:<9} {fact}\n")
    sys.stdout.flush()


def main() -> int:
    """Prepare, and print the progress."""
    try:
        prepare(_print)
    except MillstreamError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
