"""`millstream verify`: prove on the user's own app that batch = stream = replay, under crashes."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.option import DEFAULT_FILE, AppFile, HomeDir, Json, Master, ProfileName
from millstream.cli.text import counted, print_table
from millstream.errors import fault
from millstream.loading import load
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from millstream.app import App
    from millstream.lake.home import Home
    from millstream.testing.property import Proof


def verify(  # noqa: PLR0913 - a command has the options it has
    app: AppFile = DEFAULT_FILE,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    runs: Annotated[int, typer.Option(min=1, help="How many runs to try.")] = 20,
    records: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many records of each source to use.")
    ] = 30,
    seed: Annotated[int, typer.Option(help="The seed that the runs are drawn from.")] = 0,
    master: Master = None,
    json: Json = False,
) -> None:
    """Prove that batch = stream = replay. Tries other orders, other batches, crashes, restarts."""
    loaded = load(app, profile)
    loaded.raise_faults(places=False)
    proof = _proved(loaded, loaded.home(home), loaded.master(master), (runs, records, seed))
    if json:
        print(to_json(proof))
    else:
        show(proof)


def show(proof: Proof) -> None:
    """Print what was tried and held."""
    rows = [[what, str(times)] for what, times in sorted(proof.happened.items())]
    print_table(("what happened", "times"), rows)
    print(
        f"\n  ✓ {proof.app}: batch = stream = replay for {', '.join(proof.tables)}"
        f"\n  {counted(proof.runs, 'run')} with {proof.records} in {proof.seconds:.0f} s, "
        f"seed {proof.seed}"
        "\n  compared: batch, micro-batches cut anew in each run, --once; sinks: Delta tables"
    )
    if proof.left_out:
        print(f"  left out, served without a key: {', '.join(proof.left_out)}")


def _proved(app: App, home: Home, master: str, numbers: tuple[int, int, int]) -> Proof:
    from millstream.cli.quiet import open_quiet_session

    try:
        from millstream.testing.evidence import invented, recorded
        from millstream.testing.property import prove
    except ModuleNotFoundError as error:
        raise fault(
            "EXTRA_MISSING", what="verify", module=str(error.name), extra="testing"
        ) from error
    runs, records, seed = numbers
    arrivals, data = recorded(app.graph, home, records), f"records of {home.path}"
    if not arrivals:
        arrivals, data = invented(app.graph, records, seed), "made-up records"
    spark = open_quiet_session(app.name, master, conf=app.bound.spark)
    proof = prove(app, arrivals, spark, runs=runs, seed=seed, on_run=lambda n: _tell(n, runs))
    return replace(proof, records=f"{len(arrivals)} {data}")


def _tell(done: int, runs: int) -> None:
    end = "\n" if done >= runs else "\r"
    if sys.stderr.isatty():
        print(f"  {min(done, runs)} of {runs} runs", end=end, file=sys.stderr, flush=True)
