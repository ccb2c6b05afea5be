from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.alert.notices import NOTICE

import millstream as ms
from millstream.alert.destination import NotSentError
from millstream.errors import StoreFailedError

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.testing.kafka import Broker


def test_a_notice_is_a_record_by_what_it_is_about(broker: Broker, tmp_path: Path) -> None:
    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    topic = "alerts_told"
    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    courier = ms.Kafka(topic, broker.servers).courier(tmp_path)
    courier.send(NOTICE)
    courier.send(NOTICE)
    courier.close()

    consumer = Consumer(
        {"bootstrap.servers": broker.servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    records = consumer.consume(2, timeout=30)
    consumer.close()
    assert [record.key() for record in records] == [NOTICE.key.encode()] * 2
    assert [record.headers() for record in records] == [
        [("Idempotency-Key", NOTICE.id.encode())]
    ] * 2
    assert json.loads(records[0].value() or b"")["row"] == {"order": "o1", "n": 1}


def test_a_login_is_configured_as_for_spark(broker: Broker, tmp_path: Path) -> None:
    from tests.systems.stores import make_topic

    make_topic(broker.servers, "alerts_secured")
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": 'PlainLoginModule required username="shop" password="sesame";',
    }
    secured = f"127.0.0.1:{broker.secured_port}"
    courier = ms.Kafka("alerts_secured", secured, options=options).courier(tmp_path)

    courier.send(NOTICE)

    courier.close()


def test_an_option_that_the_client_does_not_have_is_reported_as_such(tmp_path: Path) -> None:
    options = {"kafka.ssl.truststore.location": "/etc/trust.jks"}

    with pytest.raises(StoreFailedError) as refusal:
        ms.Kafka("alerts", "127.0.0.1:9", options=options).courier(tmp_path)

    assert "Kafka topic 'alerts' at 127.0.0.1:9 refuses the request" in str(refusal.value)
    assert "Java TrustStores are not supported" in str(refusal.value)


def test_brokers_that_are_away_are_tried_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {"kafka.message.timeout.ms": 300, "maxOffsetsPerTrigger": 5}
    courier = ms.Kafka("alerts", "127.0.0.1:9", options=options).courier(tmp_path)

    with pytest.raises(NotSentError, match="topic 'alerts': Local: Message timed out") as refusal:
        courier.send(NOTICE)

    courier.close()
    assert refusal.value.again
    assert "".join(capfd.readouterr()) == ""
