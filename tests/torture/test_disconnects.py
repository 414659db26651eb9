"""Clients leave: before the upstream has said anything, in mid-stream, and while they wait for a whole answer."""

import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.api.conftest import CHAT, Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import TOOL, Client, body
from tests.servers.ports import wait_until
from tests.servers.script import Answer, Raw, Recorded, Silence, sse_answer
from tests.torture.ledger import SCALE, Proof, Trials

WITHIN = 1.0 if SCALE is not None else 10.0
TOGETHER = 20  # clients that leave at about the same time
BEGUN = [chat.chunk({"content": "Hel"}), *chat.call_chunks(("call_1", "get_weather", {"city": "Oslo"}))]
# window: (what the upstream says until the client leaves, whether the client wants a stream)
WINDOWS: dict[str, tuple[Answer | Raw, bool]] = {
    "before the first byte": (Raw((Silence(),)), True),
    "in mid-stream": (sse_answer(*BEGUN, Silence()), True),
    "not streaming, before the first byte": (Raw((Silence(),)), False),
    "not streaming, in the middle": (sse_answer(*BEGUN, Silence()), False),
}


@pytest.mark.proves("disconnects")
@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"] if SCALE is not None else ["sqlite"])
def test_the_upstream_is_closed_and_the_turn_stored_as_aborted(
    serve: Serve, connect: Connect, request: pytest.FixtureRequest, database_kind: str, proof: Proof, trials: Trials
) -> None:
    served = serve(request.getfixturevalue("postgres_url") if database_kind == "postgres" else None)
    for window, (answer, stream) in WINDOWS.items():
        client = connect(served)
        served.upstream.reset()
        served.upstream.always(CHAT, answer)
        left, total = 0, trials(125, 5)
        while left < total:
            count = min(TOGETHER, total - left)
            _leave(served, client, stream, window, count, left, proof)
            left += count
            served.records.ended(client.api_key, left)
        _stored(served, client, window, total, proof)


def _leave(served: Served, client: Client, stream: bool, window: str, count: int, first: int, proof: Proof) -> None:
    with ThreadPoolExecutor(count) as pool:
        sockets = list(pool.map(lambda number: _asking(served, client, first + number, stream=stream), range(count)))
    requests = served.upstream.wait_for_requests(first + count)[first:]
    chosen = random.Random(first)
    if window == "in mid-stream":
        for sock in sockets:
            _read_until(sock, b"tool_use")
    elif "middle" in window:
        wait_until(lambda: served.records.calling(client.api_key) == count, "the bridge has read every call")
    for sock in chosen.sample(sockets, count):
        if chosen.random() < 0.5:
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
    gone = time.monotonic()
    for number, recorded in enumerate(requests):
        with proof.trial(f"{window}, {first + number}"):
            _closed(recorded, gone, proof)


def _closed(recorded: Recorded, gone: float, proof: Proof) -> None:
    closed = recorded.abandoned.wait(max(0.0, WITHIN - (time.monotonic() - gone)))
    assert closed, f"the upstream was not closed within {WITHIN} s"
    proof.worst("slowest closing, seconds", time.monotonic() - gone)


def _stored(served: Served, client: Client, window: str, total: int, proof: Proof) -> None:
    turns = served.records.ended(client.api_key, total)
    wrong = [turn.status for turn in turns if turn.status != "aborted"]
    entries = list(served.records.usage(client.api_key))
    if wrong or len(entries) != total or any(entry.status != "aborted" for entry in entries):
        proof.failed(f"{window}: {wrong} and {len(entries)} entries of {total} turns")
    if "before" not in window and not all(entry.estimated and entry.output_tokens for entry in entries):
        proof.failed(f"{window}: what was used is not estimated")


def _asking(served: Served, client: Client, number: int, *, stream: bool) -> socket.socket:
    """Every other one with so much to say that its connection is not read for a while."""
    asked = body(f"Question {number} " + "at length " * (number % 2 * 20_000), stream=stream, tools=[TOOL])
    request = httpx.Request(
        "POST", f"{served.bridge.url}/v1/messages", json=asked, headers={"x-api-key": client.api_key}
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    sock = socket.create_connection(("127.0.0.1", served.bridge.port), timeout=30)
    sock.sendall(f"POST /v1/messages HTTP/1.1\r\n{head}\r\n".encode() + request.content)
    return sock


def _read_until(sock: socket.socket, word: bytes) -> None:
    seen = b""
    while word not in seen:
        data = sock.recv(65536)
        assert data, f"the stream ended: {seen!r}"
        seen += data
