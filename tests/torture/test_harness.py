"""The harness itself: sizes, what a proof counts, the table, and a proxy whose faults are what they say."""

import json
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPMessage
from pathlib import Path

import pytest

from tests.servers.ports import wait_until
from tests.torture import ledger, report
from tests.torture.asking import Request
from tests.torture.ledger import Proof
from tests.torture.properties import PROPERTIES
from tests.torture.proxy import Fault, Proxy
from tests.torture.test_endpoints import check
from tests.torture.wire import Answer, logged


def test_a_trial_that_fails_is_counted_and_named_and_the_others_go_on() -> None:
    proof = Proof("kill", "here")
    for number in range(10):
        with proof.trial(f"trial {number}"):
            assert number != 3
    assert (proof.trials, proof.failures) == (10, 1)
    with pytest.raises(AssertionError, match="trial 3: AssertionError"):
        proof.check()
    proof.tolerance = 0.1
    proof.check()


def test_a_failure_is_told_with_what_the_log_says_of_its_request(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\nERROR request req_7 failed\nTraceback\nKeyError: 5\n", encoding="utf-8")
    assert logged(log, "req_7") == "ERROR request req_7 failed\nTraceback\nKeyError: 5"
    assert logged(log, "req_8").startswith("one\n")  # it may be in there without its id
    answer = Answer(500, HTTPMessage(), b"{}")
    with pytest.raises(AssertionError, match=r"a fault of ours(.|\n)*500  b'{}'\n(.|\n)*KeyError: 5"):
        check(Request("GET", "/", [], b""), answer, log)


def test_the_suite_runs_the_small_size_and_a_scale_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "SCALE", None)
    assert ledger.sized(10_000, 7) == 7
    monkeypatch.setattr(ledger, "SCALE", 0.001)
    assert (ledger.sized(10_000, 7), ledger.sized(20, 1)) == (10, 1)


def test_a_property_that_was_not_run_keeps_its_older_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(report, "DOCUMENT", tmp_path / "reliability.md")
    monkeypatch.setenv("TORTURE_LEDGER", str(tmp_path / "ledger"))
    for name in ("purge", "kill", "kill"):
        proof = Proof(name, "here")
        proof.passed(1000)
        proof.worst("seconds", 1.5)
        proof.write()
    lines = [json.loads(line) for line in (tmp_path / "ledger").read_text().splitlines()]
    report.keep(report.summed(lines[:1], "0.1"))
    old = report.read()["`purge`"]
    report.keep(report.summed(lines[1:], "1"))
    found = report.read()
    assert list(found) == ["`kill`", "`purge`"]
    assert (found["`kill`"]["trials"], found["`kill`"]["scale"], found["`kill`"]["figures"]) == (
        "2,000",
        "1",
        "seconds 1.5",
    )
    assert found["`purge`"] == old


def test_every_property_of_the_table_can_be_written_in_it() -> None:
    assert not [name for name, stated in PROPERTIES.items() if "|" in stated.says + stated.full_size]


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that says what it hears."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            while data := _received(connection):
                connection.sendall(data)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except OSError:
        return b""


def _said(proxy: Proxy, words: bytes = b"hello") -> bytes:
    """What comes back; what a reset or silence leaves of it."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=0.5) as connection:
        heard = b""
        try:
            connection.sendall(words)
            while len(heard) < len(words) and (data := connection.recv(100)):
                heard += data
        except ConnectionResetError:
            return heard + b" RESET"
        except TimeoutError:
            return heard + b" SILENCE"
        return heard


def test_a_proxys_faults_are_what_they_say(echo: int) -> None:
    with Proxy(echo) as proxy:
        assert _said(proxy) == b"hello"
        for fault, heard in (
            (Fault("cut", 2), b"he RESET"),
            (Fault("close", 2), b"he"),
            (Fault("corrupt", 1), b"h" + bytes([ord("e") ^ 0xFF]) + b"llo"),
            (Fault("half-open", 2), b"he SILENCE"),
            (Fault("stall", 2, seconds=0.1), b"hello"),
        ):
            proxy.plan = lambda _, fault=fault: fault  # type: ignore[misc]
            assert _said(proxy) == heard
        proxy.plan = lambda _: None
        proxy.stall()
        assert _said(proxy) == b" SILENCE"
        proxy.flow()
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            _said(proxy)
        proxy.accept()
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as connection:
            connection.sendall(b"x")
            assert connection.recv(1) == b"x"
            assert proxy.cut() >= 1
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
        wait_until(lambda: proxy.open == 0, "nothing goes through any more")
