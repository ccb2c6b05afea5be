from __future__ import annotations

import json
import socketserver
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.alert.notices import AT, NOTICE

import millstream as ms
from millstream.alert.destination import NotSentError
from millstream.model.notice import Notice
from millstream.systems.mail.courier import message_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANN = "rcpt TO:<ann@example.org>"
BOB = "rcpt TO:<bob@example.org>"


@contextmanager
def server(answers: dict[str, str], said: list[str]) -> Iterator[int]:
    """Speak as much SMTP as a client wants to hear."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            in_text = False
            for raw in self.rfile:
                line = raw.decode().rstrip("\r\n")
                said.append(line)
                if in_text and line != ".":
                    continue
                verb = line.partition(" ")[0].partition(":")[0].upper()
                usual = {"DATA": "354 go on", "QUIT": "221 bye"}.get(verb, "250 ok")
                answer = answers.get(line, answers.get(verb, usual))
                in_text = answer.startswith("354")
                self.wfile.write(f"{answer}\r\n".encode())
                if verb == "QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as smtp:
        smtp.daemon_threads = True
        threading.Thread(target=smtp.serve_forever, args=(0.02,), daemon=True).start()
        yield smtp.server_address[1]
        smtp.shutdown()


def mail(port: int = 25) -> ms.Email:
    return ms.Email(["ann@example.org", "bob@example.org"], "app@example.org", "127.0.0.1", port)


def test_a_notice_is_sent_to_everyone_under_its_id(tmp_path: Path) -> None:
    said: list[str] = []
    with server({}, said) as port:
        mail(port).courier(tmp_path).send(NOTICE)

    assert [line for line in said if line.upper().startswith("RCPT")] == [
        "rcpt TO:<ann@example.org>",
        "rcpt TO:<bob@example.org>",
    ]
    assert "Subject: [shop] unpicked order=o1" in said
    assert f"Message-ID: <{NOTICE.id}@millstream>" in said
    assert "n: 1" in said


@pytest.mark.parametrize(
    ("answers", "again", "why"),
    [
        ({"MAIL": "451 later"}, True, "answered 451 later"),
        (
            {"RCPT": "550 nobody"},
            False,
            "ann@example.org: answered 550 nobody; bob@example.org: answered 550 nobody",
        ),
        ({BOB: "550 nobody"}, False, "bob@example.org: answered 550 nobody"),
        ({BOB: "450 later"}, True, "bob@example.org: answered 450 later"),
        ({"DATA": "554 spam"}, False, "answered 554 spam"),
    ],
)
def test_what_a_server_says_decides_whether_it_is_tried_again(
    tmp_path: Path, answers: dict[str, str], again: bool, why: str
) -> None:
    with server(answers, []) as port, pytest.raises(NotSentError) as refusal:
        mail(port).courier(tmp_path).send(NOTICE)

    assert (refusal.value.again, str(refusal.value)) == (again, why)


def test_who_was_refused_for_now_gets_it_later_and_the_others_once(tmp_path: Path) -> None:
    said: list[str] = []
    answers: dict[str, str] = {}
    with server(answers, said) as port:
        courier = mail(port).courier(tmp_path)
        for answers[BOB] in ("450 greylisted", "421 no more", "450 greylisted"):
            with pytest.raises(NotSentError, match=answers[BOB]):
                courier.send(NOTICE)
        answers.clear()
        courier.send(NOTICE)

    asked = [line for line in said if line.startswith("rcpt")]
    assert asked == [ANN, BOB, BOB, BOB, BOB]
    assert said.count(f"Message-ID: <{NOTICE.id}@millstream>") == 2
    assert said.count("To: ann@example.org, bob@example.org") == 2


def test_nobody_has_it_if_the_server_ends_the_exchange(tmp_path: Path) -> None:
    said: list[str] = []
    answers = {BOB: "421 too busy"}
    with server(answers, said) as port:
        courier = mail(port).courier(tmp_path)
        with pytest.raises(NotSentError, match="421 too busy"):
            courier.send(NOTICE)
        answers.clear()
        courier.send(NOTICE)

    assert [line for line in said if line.startswith("rcpt")] == [ANN, BOB, ANN, BOB]


def test_a_server_that_is_away_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(NotSentError, match=r"127\.0\.0\.1:9: ConnectionRefusedError") as refusal:
        mail(9).courier(tmp_path).send(NOTICE)

    assert refusal.value.again


@pytest.mark.parametrize(
    "end", ["\r\n", "\n", "\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_no_value_of_a_row_becomes_a_header(end: str) -> None:
    key = json.dumps({"order": f"o1{end}Bcc: eve@example.org"})
    notice = Notice(NOTICE.id, "shop", "unpicked", key, None, key)

    message = message_of(notice, mail())

    assert message["Bcc"] is None
    assert message["Subject"] == "[shop] unpicked order=o1 Bcc: eve@example.org"
    assert b"\nBcc:" not in message.as_bytes().partition(b"\n\n")[0]


def test_a_password_is_neither_shown_nor_sent_in_the_clear() -> None:
    reported = ms.Email("ann@example.org", "app", "mail.example", user="ann", password="hunter23")

    assert "hunter23" not in repr(reported)
    faults = [str(fault) for fault in reported.alert_faults("unpicked", AT)]
    assert len(faults) == 2
    assert "with sender='app'" in faults[0]
    assert "with security='none'" in faults[1]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"security": "STARTTLS", "password": "hunter24"}, "with security='STARTTLS'"),
        ({"security": "ssl"}, "with security='ssl'"),
        ({"timeout": "soon"}, "with timeout='soon'"),
        ({"timeout": "0s"}, "with timeout='0s'"),
        ({"port": 0}, "with port='0'"),
        ({"port": 65_536}, "with port='65536'"),
    ],
)
def test_what_is_wrong_with_a_server_is_found_without_the_network(
    options: dict[str, Any], fault: str
) -> None:
    [found] = replace(mail(), **options).alert_faults("unpicked", AT)

    assert fault in str(found)


def test_a_server_is_not_asked_at_all_with_a_security_that_does_not_exist(tmp_path: Path) -> None:
    said: list[str] = []
    odd: Any = {"security": "STARTTLS", "user": "ann", "password": "hunter25"}
    with server({}, said) as port, pytest.raises(NotSentError, match="none, starttls, tls"):
        replace(mail(port), **odd).courier(tmp_path).send(NOTICE)

    assert said == []
