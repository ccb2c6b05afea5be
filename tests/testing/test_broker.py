from __future__ import annotations

import shutil
import socket

import pytest
from tests.faults import raises

from millstream.testing.kafka import Broker

pytestmark = pytest.mark.kafka


def test_a_broker_whose_port_is_taken_says_so_and_where_its_log_is() -> None:
    broker = Broker()
    host, port = broker.servers.split(":")

    with socket.create_server((host, int(port))), raises("SERVICE_START") as refused:
        broker.start()

    assert str(refused.value) == (
        "[SERVICE_START] the Kafka server for tests does not start:"
        " Caused by: java.net.BindException: Address already in use\n"
        f"  fix: read {broker.log}"
    )
    shutil.rmtree(broker.log.parent)


def test_the_cluster_may_have_a_name_that_begins_with_a_dash() -> None:
    broker = Broker()
    broker.cluster = "-MgTXdQTDmrHzL_vk7Fbg"

    broker.prepare()

    assert f"cluster.id={broker.cluster}" in (broker.folder / "data/meta.properties").read_text()
    shutil.rmtree(broker.folder)
