"""Posts as they come over the wire, without Spark: what is acknowledged is in the inbox."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.apps import app_of, wait_for

from millstream.landing.inbox import Inbox, Room
from millstream.systems.http.source import Http, HttpLimits
from millstream.testing.server import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class Receiver:
    """A receiver at work; what is in its inbox counts as landed, unless it is withheld."""

    def __init__(self, place: Path, *, room: Room | None = None, **settings: Any) -> None:
        [self.port] = free_ports(1)
        self._place, self.withheld = place, False
        self.inbox = Inbox(place, epoch=1, landed=self._landed, room=lambda: room or Room())
        http = Http(self.port, **settings)
        self._thread = threading.Thread(target=http.receive, args=(self.inbox,))
        self._thread.start()
        wait_for(self._answers)

    @property
    def lines(self) -> list[str]:
        files = sorted(self._place.glob("*.txt"))
        return [line for file in files for line in file.read_text().splitlines()]

    def wait_until_accepted(self, records: int) -> None:
        """Wait for records; those after two files that have not landed stay in memory."""
        wait_for(lambda: len(self.lines) + len(self.inbox._waiting) == records)

    def connect(self, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection((HOST, self.port), timeout=60)
        connection.sendall(sent)
        return connection

    def ask(self, request: bytes) -> tuple[int, dict[str, str], Any]:
        with self.connect(request) as connection:
            return answer_of(connection)

    def post(self, body: bytes, *headers: str, path: str = "/") -> tuple[int, dict[str, str], Any]:
        return self.ask(a_post(body, *headers, path=path))

    def close(self) -> None:
        self.inbox.close()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _landed(self) -> str:
        files = [] if self.withheld else sorted(self._place.glob("*.txt"))
        return files[-1].name if files else ""

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0


def a_post(body: bytes, *headers: str, path: str = "/") -> bytes:
    lines = (f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}", *headers)
    host = () if any(line.startswith("Host:") for line in headers) else ("Host: localhost",)
    return "\r\n".join((*lines, *host, "", "")).encode() + body


def answer_of(connection: socket.socket) -> tuple[int, dict[str, str], Any]:
    with connection.makefile("rb") as stream:
        return answer_from(stream)


def answer_from(stream: Any) -> tuple[int, dict[str, str], Any]:
    """Read one answer: its status, headers and JSON."""
    status = int(stream.readline().split()[1])
    lines = iter(lambda: stream.readline().decode().strip(), "")
    pairs = (line.partition(": ") for line in lines)
    headers = {name.lower(): value for name, _, value in pairs}
    body = stream.read(int(headers["content-length"]))
    return status, headers, json.loads(body) if body else None


@contextmanager
def receiving(place: Path, **settings: Any) -> Iterator[Receiver]:
    with closing(Receiver(place, **settings)) as receiver:
        yield receiver


def is_closed(connection: socket.socket) -> bool:
    """Wait for the other side, and return whether it has closed the connection unanswered."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def in_chunks(*parts: bytes) -> bytes:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def statuses(*answers: tuple[int, Mapping[str, str], Any]) -> list[int]:
    return [status for status, _, _ in answers]


def test_a_post_that_is_cut_off_is_not_landed(tmp_path: Path) -> None:
    record = b'{"id": 1, "n": "ok"}'
    with receiving(tmp_path) as receiver:
        for cut in (a_post(record)[:-6], in_chunks(record)[:-9], in_chunks(record)):
            with receiver.connect(cut) as connection:
                connection.shutdown(socket.SHUT_WR)
                assert is_closed(connection)

        assert receiver.post(b'{"id": 2}')[::2] == (200, {"landed": 1})
        assert receiver.lines == ['{"id": 2}']


def test_a_body_in_chunks_is_landed_when_it_is_complete(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        answer = receiver.ask(in_chunks(b'{"id"', b': 1}\n{"id": 2}', b""))

        assert answer[::2] == (200, {"landed": 2})
        assert receiver.lines == ['{"id": 1}', '{"id": 2}']


def test_a_post_is_answered_when_it_is_landed_and_not_before(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        receiver.withheld = True
        with receiver.connect(a_post(b"one")) as connection:
            wait_for(lambda: receiver.lines == ["one"])
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
            connection.settimeout(60)

            receiver.withheld = False

            assert answer_of(connection)[::2] == (200, {"landed": 1})


def test_posts_of_one_connection_are_answered_in_order(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        asked = a_post(b"one") + a_post(b"two", path="/other") + a_post(b"three\nfour")
        with receiver.connect(asked) as connection, connection.makefile("rb") as stream:
            answers = [answer_from(stream) for _ in range(3)]

        assert [answer[::2] for answer in answers] == [
            (200, {"landed": 1}), (404, {"error": "post to /"}), (200, {"landed": 2}),
        ]  # fmt: skip
        assert receiver.lines == ["one", "three", "four"]


def test_what_is_no_post_to_the_path_is_refused_and_the_answer_says_what_is(
    tmp_path: Path,
) -> None:
    with receiving(tmp_path, path="/rings") as receiver:
        ask, host = receiver.ask, b"Host: localhost\r\n\r\n"
        assert ask(b"GET /rings HTTP/1.1\r\n" + host)[::2] == (
            405, {"error": "GET is not answered: post to /rings"},
        )  # fmt: skip
        assert ask(b"DELETE /rings HTTP/1.1\r\n" + host)[1]["allow"] == "POST"
        assert ask(b"HEAD /rings HTTP/1.1\r\nConnection: close\r\n" + host)[::2] == (405, None)
        assert ask(b"POST / HTTP/1.1\r\n" + host)[::2] == (404, {"error": "post to /rings"})
        assert ask(a_post(b"x", "Content-Encoding: gzip", path="/rings"))[0] == 415
        assert ask(a_post(b"0\r\n\r\n", "Transfer-Encoding: chunked", path="/rings"))[0] == 400
        assert receiver.lines == []


def test_a_client_that_asks_first_sends_its_body_only_if_it_is_wanted(tmp_path: Path) -> None:
    with receiving(tmp_path, limits=HttpLimits(post_bytes=3)) as receiver:
        expect = "Expect: 100-continue"
        wanted = receiver.connect(a_post(b"one", expect)[:-3])
        with wanted as connection, connection.makefile("rb") as stream:
            assert stream.readline() == b"HTTP/1.1 100 Continue\r\n"
            assert stream.readline() == b"\r\n"
            connection.sendall(b"one")
            assert answer_from(stream)[0] == 200
        with receiver.connect(a_post(b"four", expect)[:-4]) as connection:
            assert answer_of(connection)[0] == 413


def test_slow_clients_are_not_waited_for(tmp_path: Path) -> None:
    soon = timedelta(milliseconds=50)
    limits = HttpLimits(header_timeout=soon, body_timeout=soon, idle_timeout=soon)
    with receiving(tmp_path, limits=limits) as receiver:
        for part_of_header in (b"", a_post(b"")[:20]):
            with receiver.connect(part_of_header) as connection:
                assert is_closed(connection)
        for part_of_body in (a_post(b"one")[:-1], in_chunks(b"one")):
            with receiver.connect(part_of_body) as connection:
                status, headers, _ = answer_of(connection)
                assert (status, headers["connection"]) == (408, "close")
                assert is_closed(connection)
        for after_an_answer in (b"", a_post(b"two")[:20]):
            with receiver.connect(a_post(b"one")) as connection:
                assert answer_of(connection)[0] == 200
                connection.sendall(after_an_answer)
                assert is_closed(connection)

        assert receiver.lines == ["one", "one"]


def test_connections_that_keep_the_receiver_waiting_make_room_for_others(tmp_path: Path) -> None:
    with (
        receiving(tmp_path, limits=HttpLimits(connections=3)) as receiver,
        ExitStack() as open_ones,
    ):
        slow = [open_ones.enter_context(receiver.connect(a_post(b"x")[:-1])) for _ in range(9)]

        assert receiver.post(b"one")[0] == 200
        assert all(is_closed(connection) for connection in slow[:7])

        receiver.withheld = True
        busy = [open_ones.enter_context(receiver.connect(a_post(b"two"))) for _ in range(3)]
        receiver.wait_until_accepted(4)
        status, headers, _ = receiver.post(b"three")
        assert (status, headers["retry-after"]) == (503, "1")

        receiver.withheld = False
        assert statuses(*map(answer_of, busy)) == [200, 200, 200]
        assert receiver.post(b"three")[0] == 200


def test_slow_clients_by_the_hundred_keep_nobody_else_from_posting(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        crowd = subprocess.Popen(
            [sys.executable, "-m", "tests.systems.slow_clients", str(receiver.port), "1500"],
            stdout=subprocess.PIPE,
        )
        with crowd:
            try:
                assert crowd.stdout is not None
                assert crowd.stdout.readline() == b"1500\n"

                answers = [receiver.post(b"%d" % number) for number in range(100)]
            finally:
                crowd.kill()

        assert statuses(*answers) == [200] * 100
        assert receiver.lines[-1] == "99"


def test_a_post_that_is_too_large_is_refused_as_a_whole(tmp_path: Path) -> None:
    limits, of_json = HttpLimits(post_bytes=1000, post_records=5), "Content-Type: application/json"
    with receiving(tmp_path, limits=limits) as receiver:
        assert (
            statuses(
                receiver.post(b"x" * 1001),
                receiver.post(b"x" * (4 << 20)),
                receiver.ask(in_chunks(b"x" * 600, b"x" * 401, b"")),
                receiver.post(b"1\n2\n3\n4\n5\n6"),
                receiver.post(b"[1, 2, 3, 4, 5, 6]", of_json),
            )
            == [413] * 5
        )
        assert receiver.lines == []
        assert (
            statuses(
                receiver.post(b"x" * 1000),
                receiver.post(b"1\n2\n3\n4\n5\n"),
                receiver.post(b"[1, 2, 3, 4, 5]", of_json),
            )
            == [200] * 3
        )


def test_clients_that_post_faster_than_records_land_are_asked_to_wait(tmp_path: Path) -> None:
    limits, room = HttpLimits(bytes_in_flight=10), Room(2, batch_s=3.2)
    with (
        receiving(tmp_path, limits=limits, room=room) as receiver,
        ExitStack() as open_ones,
    ):
        receiver.withheld = True
        waiting = []
        for number in range(3):
            waiting.append(open_ones.enter_context(receiver.connect(a_post(b"%d" % number))))
            receiver.wait_until_accepted(number + 1)
        # A batch is under way, and the next one has all that it can take within its target.
        status, headers, answer = receiver.post(b"3")
        assert (status, headers["retry-after"]) == (429, "4")
        assert answer == {"error": "too many records wait to be landed: post again later"}
        status, headers, _ = receiver.post(b"x" * 8)
        assert (status, headers["retry-after"]) == (429, "1")

        receiver.withheld = False
        assert statuses(*map(answer_of, waiting)) == [200] * 3
        assert receiver.lines == ["0", "1", "2"]


def test_on_loopback_only_programs_of_this_machine_may_post(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        assert (
            statuses(
                receiver.post(b"x", "Host: rebound.example"),
                receiver.post(b"x", "Origin: https://shop.example"),
                receiver.post(b"x", "Origin: null"),
            )
            == [403] * 3
        )
        assert (
            statuses(
                receiver.post(b"one", f"Host: {HOST}:{receiver.port}"),
                receiver.post(b"two", "Origin: http://localhost:3000"),
            )
            == [200] * 2
        )
        assert receiver.lines == ["one", "two"]


def test_with_a_token_only_those_who_know_it_may_post(tmp_path: Path) -> None:
    with receiving(tmp_path, token="oyster") as receiver:
        for header in ("X-Other: oyster", "Authorization: Bearer pearl", "Authorization: oyster"):
            status, headers, _ = receiver.post(b"x", header)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert receiver.post(b"one", "Authorization: Bearer oyster")[0] == 200
        assert receiver.lines == ["one"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'[{"id": 1}', "truncated"),
        (b'{"id": 1} {"id": 2}', "trailing"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "JSON is nested too deeply"),
        (b"[" * 100_000, "JSON is nested too deeply"),
    ],
)
def test_what_is_called_json_and_is_not_is_refused(tmp_path: Path, body: bytes, error: str) -> None:
    with receiving(tmp_path) as receiver:
        status, _, answer = receiver.post(body, "Content-Type: application/json; charset=utf-8")

        assert status == 400
        assert error in answer["error"]
        assert receiver.lines == []


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: one\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000,
        in_chunks(b"one") + b"no number\r\n",
    ],
)
def test_what_is_not_http_gets_no_more_than_a_refusal(
    tmp_path: Path, garbage: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with receiving(tmp_path) as receiver:
        with receiver.connect(garbage) as connection, connection.makefile("rb") as stream:
            assert stream.readline() == b"HTTP/1.1 400 Bad Request\r\n"

        assert receiver.post(b"one")[0] == 200
        assert receiver.lines == ["one"]
    assert capfd.readouterr().err == ""


def test_an_app_that_stops_refuses_what_is_not_landed(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        receiver.withheld = True
        with receiver.connect(a_post(b"one")) as connection, receiver.connect() as idle:
            wait_for(lambda: receiver.lines == ["one"])
            receiver.close()

            status, headers, _ = answer_of(connection)
            assert (status, headers["retry-after"]) == (503, "1")
            assert is_closed(idle)


def test_limits_and_tokens_that_nobody_can_meet_are_found_before_a_run() -> None:
    limits = HttpLimits(connections=0, idle_timeout=timedelta())
    app = app_of(Http(7401, token="två ord", limits=limits))

    assert [(fault.code, fault.what) for fault in app.faults] == [
        ("LIMIT_REFUSED", f"source 'readings' has {wrong}")
        for wrong in ("token='***'", "limits.connections=0", "limits.idle_timeout='0:00:00'")
    ]


def test_a_token_is_never_printed() -> None:
    assert "oyster" not in repr(Http(7401, token="oyster"))
