"""How stores refuse what does not fit their fence, without their passwords."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.faults import raises

import millstream as ms
from millstream.errors import StoreRestoredError, fault
from millstream.lake.fence import Fence, Logged
from millstream.serve.fence import Place, check_against_checkpoint
from millstream.systems.address import guarded

PLACE = Place("the store", "`FORGET`")
HELD = Fence("app/d", 3, "me", "query", batch=5)


def test_a_store_that_does_not_match_the_checkpoint_is_refused() -> None:
    def hold(batch: int, committed: int, planned: int, query_id: str = "query") -> None:
        logged = Logged(query_id, committed, planned)
        check_against_checkpoint(replace(HELD, batch=batch), PLACE, logged, "home/checkpoints/d")

    hold(5, committed=5, planned=5)
    hold(5, committed=4, planned=5)
    hold(-1, committed=-1, planned=-1, query_id="")
    with pytest.raises(StoreRestoredError, match="has committed batch 6") as restored:
        hold(5, committed=6, planned=6)
    with raises("STORE_AHEAD", match="this one knows batches up to 4"):
        hold(5, committed=4, planned=4)
    with raises("STORE_AHEAD", match="of another checkpoint"):
        hold(5, committed=5, planned=5, query_id="another")
    assert restored.value.fix.endswith("delete 'home/checkpoints/d' and run `FORGET`")


@pytest.mark.parametrize(
    ("address", "password"),
    [
        ("postgresql://me:sesame%20street@db/shop?sslmode=require", "sesame street"),
        ("postgresql://me@db/shop?password=sesame%20street", "sesame street"),
        ("host=db user=me password = 'sesame street' dbname=shop", "sesame street"),
        ("redis://:sesame%20street@db:6379/0", "sesame street"),
        ("postgresql://db/shop?sslpassword=sesame%20street&sslmode=require", "sesame street"),
        ("postgresql://db/shop?PASSWORD=sesame%20street", "sesame street"),
        ("host=db sslpassword='sesame street'", "sesame street"),
        (r"host=db password=sesame\ street", "sesame street"),
        ("user=me password=se'sesame host=db", "se'sesame"),
    ],
)
def test_an_address_prints_without_its_password(address: str, password: str) -> None:
    shown = guarded(address)

    assert shown == address
    assert "sesame" not in f"{shown} {shown!r}"
    assert "db" in f"{shown}"
    reported = fault(
        "STORE_RESTORED",
        store=password,
        held="no batch" if 1 < 0 else f"batches up to {1}",
        knows=2,
        checkpoint="c",
        forget="f",
    )
    assert "sesame" not in str(reported)


@pytest.mark.parametrize(
    "address", ["postgresql:/me:oyster@db/shop", "redis//:oyster@db", "postgres:me:oyster@db"]
)
def test_an_address_that_cannot_be_read_is_not_printed_at_all(address: str) -> None:
    assert f"{guarded(address)}" == "***"
    assert guarded(address) == address


def test_secrets_of_a_client_are_not_printed() -> None:
    login = 'PlainLoginModule required username="shop" password="oyster";'
    options = {
        "kafka.sasl.jaas.config": login,
        "kafka.ssl.key.password": "oyster-key",
        "kafka.client.id": "shop",
    }

    topic = ms.Kafka("orders", "db:9092", options=options)

    shown = f"{topic!r} {topic.in_batches()!r}"
    assert "oyster" not in shown
    assert "'kafka.client.id': 'shop'" in shown
    assert topic.in_batches().client["sasl.password"] == "oyster"
    assert topic.in_batches().client["ssl.key.password"] == "oyster-key"
    assert topic.spark_options == options
    assert all(type(value) is str for value in topic.spark_options.values())
