"""An election: votes by district; each voter counts once, however often they vote.

ballots  every ballot, with a verdict; a late ballot is stored, but not counted
valid    each ballot once, for a choice on the list; the others are in quarantine
votes    the ballot that counts for each voter: the first by event time
ignored  the other ballots of voters who voted again
results  votes by district and choice

The first by event time counts, not the first to arrive. So the answer depends on the ballots alone:
an earlier ballot that arrives after a later one replaces it.
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

CHOICES = ("bridge", "ferry", "tunnel")
DISTRICTS = ("east", "harbour", "old town", "west")
VOTERS = 5_000

app = ms.App("votes")


def ballot(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a ballot; one in a hundred is for a choice that is not on the list."""
    voter = dice.randrange(VOTERS)
    return {
        "ballot": number,
        "voter": f"voter-{voter:04d}",
        "district": DISTRICTS[voter % len(DISTRICTS)],
        "choice": "none of these" if dice.random() < 0.01 else dice.choice(CHOICES),
    }


@app.source(event_time="at", watermark="1 minute")
def ballots() -> ms.Generator:
    """Ballots, some of them late, duplicate or malformed."""
    return ms.Generator(
        schema="ballot BIGINT NOT NULL, voter STRING NOT NULL, district STRING NOT NULL, "
        "choice STRING NOT NULL, at TIMESTAMP",
        make=ballot,
        event_time="at",
        rate=200,
        seed=7,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
    )


@app.table(
    expect={
        "choice is on the list": "choice IN ('bridge', 'ferry', 'tunnel')",
        "district exists": "district IN ('east', 'harbour', 'old town', 'west')",
    }
)
def valid(ballots: DataFrame) -> DataFrame:
    """Each ballot once, though some are delivered twice."""
    return ms.dedup(ballots, ["ballot", "at"])


@app.table(mode="update", key=["voter"])
def votes(valid: DataFrame) -> DataFrame:
    """The ballot that counts: a voter's first; of two at one instant, the lower number.

    The state keeps one row for each voter, for as long as the app runs.
    """
    first = F.min(F.struct("at", "ballot", "district", "choice")).alias("first")
    return valid.groupBy("voter").agg(first).select("voter", "first.*")


@app.table(mode="complete")
def ignored(valid: DataFrame, votes: DataFrame) -> DataFrame:
    """The ballots that do not count, because their voter has voted before."""
    return valid.join(votes.select("ballot"), "ballot", "left_anti")


app.sql(
    "results",
    "SELECT district, choice, count(*) AS votes FROM votes GROUP BY district, choice",
    mode="complete",
)
