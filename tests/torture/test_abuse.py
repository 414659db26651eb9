"""Clients that are too slow, too big, or not there: they cost little, and the others go on.

Those who abuse the bridge are a process of their own, as is the upstream that pours out what they ask for: what they do
to themselves, and to each other, must not look like the bridge's doing.
"""

import json
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import get_context
from typing import Any

import psutil
import pytest

from tests.api.conftest import Connect, Serve
from tests.servers import chat
from tests.servers.client import TOOL, Client, body
from tests.servers.script import Answer, Raw, Recorded, Silence, sse_answer
from tests.servers.upstream import ScriptedUpstream
from tests.torture.ledger import SCALE, Proof, sized
from tests.torture.load import Load, Reply

FULL = SCALE is not None
CONNECTIONS = sized(1_000, 100)
MESSAGES = sized(100_000, 2_000)
TOOLS = sized(10_000, 500)
MEGABYTES = 31 if FULL else 8
RATE = 20 if FULL else 5
ROUNDS = 5 if FULL else 1  # of each: a few seconds of anything are too short for a median that stays within a fifth
CALM = 3 if FULL else 0.5  # seconds before each, which tell what is usual
SLOWEST = 5.0 if FULL else 20.0  # seconds that another client may ever wait
SHARE = 1.2  # of their usual median; the suite's machine has other work, and is asked for nothing that is timed
ENDLESS = "claude-opus-4-1"  # the model that never stops
MUCH = sse_answer(*[chat.chunk({"content": "x" * 50_000})] * 20, Silence())
WORD = chat.text("ok")
MEMORY = 600  # megabytes more than before


class Upstream(ScriptedUpstream):
    """A word for everybody, and nothing is remembered."""

    answer = WORD

    def _answer_for(self, request: Recorded) -> Answer | Raw:
        self.requests.clear()
        return self.answer


class Pouring(Upstream):
    """More than anybody reads."""

    answer = MUCH


def pour() -> str:
    """Its address; it goes on until its process ends."""
    return Pouring().__enter__().url


def head(key: str, length: int) -> bytes:
    return (
        "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"x-api-key: {key}\r\ncontent-length: {length}\r\n"
    ).encode()


@contextmanager
def sockets(port: int, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(count)]


def asked(port: int, key: str, content: bytes) -> int:
    with closing(Client(f"http://127.0.0.1:{port}", key)) as client:
        return client.http.post("/v1/messages", content=content, timeout=120).status_code


def slow_heads(port: int, key: str) -> None:
    """A line of the head now and then, and never the end."""
    with sockets(port, CONNECTIONS) as opened:
        for line in (b"POST /v1/messages HTTP/1.1\r\n", b"host: 127.0.0.1\r\n", b"x-slow: 1\r\n"):
            for sock in opened:
                sock.sendall(line)
            time.sleep(0.5)


def slow_bodies(port: int, key: str) -> None:
    with sockets(port, CONNECTIONS) as opened:
        for sock in opened:
            sock.sendall(head(key, 1_000_000) + b"\r\n{")
        for _ in range(3):
            for sock in opened:
                sock.sendall(b" ")
            time.sleep(0.5)


def half_open(port: int, key: str) -> None:
    """They asked, and their machine is gone: nobody reads, nobody says goodbye."""
    asked = json.dumps(body("Go on.", model=ENDLESS, stream=True)).encode()
    with sockets(port, min(CONNECTIONS, 200)) as opened:
        for sock in opened:
            sock.sendall(head(key, len(asked)) + b"\r\n" + asked)
        time.sleep(2)


def big_bodies(port: int, key: str) -> None:
    words = "x" * (MEGABYTES * 1_000_000)
    for _ in range(2):
        assert asked(port, key, json.dumps(body(words)).encode()) == 200
    assert asked(port, key, b" " * 34_000_000) == 413


def long_history(port: int, key: str) -> None:
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Message {n}"} for n in range(MESSAGES - 1)]
    assert asked(port, key, json.dumps(body(*said)).encode()) == 200


def many_tools(port: int, key: str) -> None:
    tools: list[Any] = [{**TOOL, "name": f"tool_{number}"} for number in range(TOOLS)]
    assert asked(port, key, json.dumps(body("Hi", tools=tools)).encode()) == 200


ABUSES: dict[str, Callable[[int, str], None]] = {
    "slow heads": slow_heads,
    "slow bodies": slow_bodies,
    "half-open sockets": half_open,
    "bodies of 32 MB": big_bodies,
    "a history of 100,000 messages": long_history,
    "10,000 tools": many_tools,
}


@pytest.fixture
def around() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture
def elsewhere() -> Iterator[Executor]:
    with another_process() as process:
        process.submit(time.time).result()
        yield process


@pytest.fixture
def pouring() -> Iterator[str]:
    """The address of the upstream that never stops."""
    with another_process() as process:
        yield process.submit(pour).result()


def another_process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


@pytest.mark.proves("abuse")
@pytest.mark.timeout(600)
def test_the_others_go_on_and_memory_is_bounded(
    serve: Serve, connect: Connect, around: Upstream, pouring: str, elsewhere: Executor, proof: Proof
) -> None:
    endless = {"VLLM_BASE_URL": f"{pouring}/v1", "MODEL_MAP_OPUS": "vllm/endless"}
    served = serve(OPENAI_BASE_URL=f"{around.url}/openai/v1", **endless)
    abuser, other = connect(served), connect(served)
    bridge = psutil.Process(served.bridge.pid)
    assert other.ask("Hi").status_code == 200
    for name, abuse in ABUSES.items():
        abused: list[tuple[float, float]] = []
        with proof.trial(name):
            with Load(served.bridge.url, other.api_key, RATE, _question) as load:
                for _ in range(ROUNDS):
                    time.sleep(CALM)
                    began = time.monotonic()
                    more = _more_memory(elsewhere, bridge, abuse, served.bridge.port, abuser.api_key)
                    abused.append((began, time.monotonic()))
                    proof.worst(f"{name}: MB more", more)
                    assert more < MEMORY, f"{more:.0f} MB more"
            _went_on(load, abused, name, proof)
    assert other.ask("Hi").status_code == 200


def _more_memory(elsewhere: Executor, bridge: psutil.Process, abuse: Callable[[int, str], None], *who: Any) -> float:
    """Megabytes that the bridge has more than before, at most."""
    before = most = bridge.memory_info().rss
    abusing = elsewhere.submit(abuse, *who)
    while not wait((abusing,), timeout=0.02).done:
        most = max(most, bridge.memory_info().rss)
    abusing.result()
    return (most - before) / 1e6


def _question(number: int) -> dict[str, Any]:
    return body(f"Question {number}", stream=number % 2 == 0)


def _went_on(load: Load, abused: list[tuple[float, float]], name: str, proof: Proof) -> None:
    bad = [reply.text for reply in load.replies if not reply.good]
    assert not bad, bad[:2]
    slowest = max(reply.seconds for reply in load.replies)
    proof.worst(f"{name}: slowest other, s", slowest)
    assert slowest < SLOWEST, f"another client waited for {slowest:.1f} s"
    if not FULL:
        return
    usual, meanwhile = list[Reply](), list[Reply]()
    for reply in load.replies:
        (meanwhile if any(begun <= reply.began <= ended for begun, ended in abused) else usual).append(reply)
    share = _median(meanwhile) / _median(usual)
    proof.worst(f"{name}: median of others, share of usual", share)
    assert share <= SHARE, f"the others took {share:.2f} times as long as usual"


def _median(replies: list[Reply]) -> float:
    return statistics.median(reply.seconds for reply in replies)
