"""The numbers 2, 10 and 5, one after another by event time in any order of arrival, or not at all.

numbers  every number, with a verdict
found    2, then 10, then 5, from one device within 10 seconds
stuck    a 2 that was not followed by 10 and 5 in that time
falling  three numbers or more, directly one after another, each smaller than the one before

Other numbers may come in between. A number is processed when the watermark has passed it, so an
earlier number that arrives after it still comes before it.
"""

import random

from pyspark.sql import DataFrame

import millstream as ms

DEVICES = 1_000

app = ms.App("patterns")

two_ten_five = (
    ms.pattern(key="device", within="10 seconds")
    .step("two", "value = 2")
    .step("ten", "value = 10")
    .step("five", "value = 5")
)

decline = (
    ms.pattern(key="device", within="1 minute")
    .step("top", "value IS NOT NULL")
    .step(
        "lower",
        "value < top.value AND (lower.value IS NULL OR value < lower.value)",
        times=(2, None),
        strict=True,
    )
)


def number(dice: random.Random, _: int) -> dict[str, object]:
    """Generate a number of a device; 2, 10 and 5 are more frequent than others."""
    value = dice.choice((2, 10, 5, dice.randrange(20)))
    return {"device": f"device-{dice.randrange(DEVICES):04d}", "value": value}


@app.source(event_time="at", watermark="5 seconds")
def numbers() -> ms.Generator:
    """Numbers, some of them late or malformed."""
    return ms.Generator(
        schema="device STRING NOT NULL, value BIGINT NOT NULL, at TIMESTAMP",
        make=number,
        event_time="at",
        rate=500,
        seed=5,
        late=0.01,
        malformed=0.01,
    )


@app.table
def found(numbers: DataFrame) -> DataFrame:
    """When it happened; comes out as soon as the watermark has passed the 5."""
    return ms.match(
        numbers, two_ten_five, select="device, two.at AS two_at, ten.at AS ten_at, ended AS five_at"
    )


@app.table
def stuck(numbers: DataFrame) -> DataFrame:
    """When it did not happen; comes out as soon as the watermark has passed the time for it."""
    return ms.absent(numbers, two_ten_five, select="device, began, until")


@app.table
def falling(numbers: DataFrame) -> DataFrame:
    """Falling numbers of a device: the first, the least, and how many."""
    return ms.match(
        numbers,
        decline,
        select="device, began, ended, top.value AS top, min(lower.value) AS bottom, "
        "count(lower.*) + 1 AS numbers",
    )
