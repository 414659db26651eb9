"""The servers that the other tests stand on."""

import http.client
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
import redis

from tests.servers.bridge import PROJECT
from tests.servers.ports import wait_until
from tests.servers.script import Abort, Gate, Raw, Silence, json_answer, sse_answer
from tests.servers.upstream import ScriptedUpstream


def connect(upstream: ScriptedUpstream) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(upstream.url).netloc, timeout=10)


def test_postgres_is_the_wheels_and_each_test_has_a_database_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.info.server_version // 10000 == 18
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_valkey_answers(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.set("key", "value")
        assert client.get("key") == b"value"


def test_answers_come_in_the_order_they_were_queued_and_requests_are_recorded(upstream: ScriptedUpstream) -> None:
    upstream.queue("/v1/x", json_answer({"n": 1}), json_answer({"n": 2}, status=429, headers={"retry-after": "7"}))
    connection = connect(upstream)
    connection.request("POST", "/v1/x?a=b", b'{"question": 1}', {"X-Custom": "yes"})
    assert connection.getresponse().read() == b'{"n": 1}'
    connection.request("POST", "/v1/x")
    second = connection.getresponse()
    assert (second.status, second.headers["retry-after"], second.read()) == (429, "7", b'{"n": 2}')
    first = upstream.requests[0]
    assert (first.method, first.path, first.query, first.headers["x-custom"]) == ("POST", "/v1/x", "a=b", "yes")
    assert first.json() == {"question": 1}
    connection.close()


def test_a_gate_holds_the_answer_until_it_is_opened(upstream: ScriptedUpstream) -> None:
    gate = Gate()
    upstream.queue("/", sse_answer(b"data: 1\n\n", gate, b"data: 2\n\n"))
    connection = connect(upstream)
    connection.request("POST", "/")
    response = connection.getresponse()
    assert response.read1() == b"data: 1\n\n"
    assert gate.reached.wait(5)
    gate.open()
    assert response.read() == b"data: 2\n\n"
    connection.close()


def test_an_abort_cuts_the_answer_short(upstream: ScriptedUpstream) -> None:
    upstream.queue("/", sse_answer(b"data: 1\n\n", Abort()))
    connection = connect(upstream)
    connection.request("POST", "/")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        connection.getresponse().read()
    connection.close()


def test_raw_bytes_go_out_as_they_are(upstream: ScriptedUpstream) -> None:
    upstream.queue("/", Raw((b"this is not HTTP",)))
    with socket.create_connection(("127.0.0.1", urlsplit(upstream.url).port or 0)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        with client.makefile("rb") as answer:
            assert answer.read() == b"this is not HTTP"


def test_a_client_that_leaves_is_noticed(upstream: ScriptedUpstream) -> None:
    upstream.queue("/", sse_answer(b"data: 1\n\n", Silence()))
    connection = connect(upstream)
    connection.request("POST", "/")
    response = connection.getresponse()
    response.read1()
    abandoned: threading.Event = upstream.requests[0].abandoned
    assert not abandoned.is_set()
    response.close()
    connection.close()
    assert abandoned.wait(5)


def test_what_is_not_scripted_shows(upstream: ScriptedUpstream) -> None:
    connection = connect(upstream)
    connection.request("GET", "/nowhere")
    response = connection.getresponse()
    response.read()
    assert response.status == 599
    connection.close()


STARTS = """
import pathlib, sys, time
from tests.servers.valkey import Valkey
server = Valkey(pathlib.Path(sys.argv[1]))
server.start()
print(server._process.pid, flush=True)
time.sleep(60)
"""


def test_a_server_does_not_outlive_a_test_process_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS, str(tmp_path)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        server = psutil.Process(int(tests.stdout.readline()))
        assert server.is_running()
        tests.kill()
    wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, "the server has ended")
