"""Traffic of all kinds for a long time: nothing grows but the database."""

import asyncio
import random
import re
import statistics
from typing import NamedTuple

import httpx
import psutil
import pytest

from tests.api.conftest import Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import NO_AUTHORITIES, TOOL, body
from tests.servers.ports import wait_until
from tests.servers.script import Answer, Pause, Raw, Recorded, sse_answer
from tests.servers.upstream import ScriptedUpstream
from tests.torture.ledger import SCALE, Proof, Trials

TOGETHER = 16
SAMPLES = 20
SLOPE = 1.0  # MB per 10,000 requests
# What a process remembers is bounded: 4,096 conversations, 16 MB of messages that were parsed. So many requests, each
# with a history, fill that. What is said afterwards is said again and again: parsed messages go a generation at a time,
# and ups and downs of tens of megabytes would hide what is looked for.
WARM, HISTORY = 20_000, 4
AGAIN = 5_000  # and then so many of those that are counted: they ask for other things
SAYINGS = 1_000
CALL = ("call_1", "get_weather", {"city": "Oslo"})
ANSWERS = (
    chat.text("ok"),
    chat.calls(CALL),
    chat.streamed_text("Hel", "lo"),
    chat.streamed_calls(CALL),
    sse_answer(chat.chunk({"content": "slow"}), Pause(0.05), *chat.ending("stop")),
    chat.error(500, "try later"),
)


class Mixed(ScriptedUpstream):
    """Answers of all kinds, and remembers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._random = random.Random(3)

    def _answer_for(self, request: Recorded) -> Answer | Raw:
        answers = ANSWERS[2:5] if request.json().get("stream") else ANSWERS[:2]
        return ANSWERS[5] if self._random.random() < 0.02 else self._random.choice(answers)


@pytest.mark.proves("soak")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"] if SCALE is not None else ["sqlite"])
def test_nothing_grows_but_the_database(
    serve: Serve, connect: Connect, request: pytest.FixtureRequest, database_kind: str, proof: Proof, trials: Trials
) -> None:
    url = request.getfixturevalue("postgres_url") if database_kind == "postgres" else None
    with Mixed() as upstream:
        served = serve(url, OPENAI_BASE_URL=f"{upstream.url}/openai/v1")
        bridge = psutil.Process(served.bridge.pid)
        api_key, count = connect(served).api_key, trials(100_000, 300)
        wave = max(50, count // SAMPLES)
        # Caches fill and code is loaded before anything is counted.
        warm = wave if SCALE is None else WARM
        asyncio.run(_wave(served, api_key, -warm, warm, proof))
        for _ in range(0, AGAIN if SCALE is not None else 0, 1_000):
            asyncio.run(_wave(served, api_key, count, 1_000, proof))
            _now(served, bridge)
        _rested(served)
        measured = [Measured(0, *_now(served, bridge))]
        for done in range(0, count, wave):
            asyncio.run(_wave(served, api_key, done, wave, proof))
            _rested(served)
            measured.append(Measured(done + wave, *_now(served, bridge)))
        running = served.records.turns(api_key).filter(status="running")
        wait_until(lambda: not running.exists(), "no turn runs any more")
    _flat(measured, proof)


class Measured(NamedTuple):
    requests: int
    memory: int
    descriptors: int
    threads: int
    tasks: int


def _now(served: Served, bridge: psutil.Process) -> tuple[int, int, int, int]:
    tasks = re.search(r"^toolbridge_tasks ([\d.]+)$", httpx.get(f"{served.bridge.url}/metrics").text, re.MULTILINE)
    assert tasks is not None
    return bridge.memory_info().rss, bridge.num_fds(), bridge.num_threads(), int(float(tasks[1]))


def _flat(measured: list[Measured], proof: Proof) -> None:
    requests, memory, descriptors, threads, tasks = zip(*measured, strict=True)
    slope = statistics.linear_regression(requests, memory).slope * 10_000 / 1e6
    proof.worst("MB per 10,000 requests", slope)
    proof.worst("most file descriptors", max(descriptors))
    proof.worst("most tasks at rest", max(tasks))
    # Upstreams' connections come and go with the clients.
    assert max(descriptors) <= descriptors[0] + 2 * TOGETHER, f"file descriptors: {descriptors}"
    assert max(threads) <= threads[0] + 5, f"threads: {threads}"
    assert max(tasks) <= tasks[0] + 5, f"tasks: {tasks}"
    # A slope of few requests is noise: each of them may load something for the first time.
    if requests[-1] >= 20_000:
        assert slope < SLOPE, f"{slope:.2f} MB per 10,000 requests: {memory}"


async def _wave(served: Served, api_key: str, first: int, count: int, proof: Proof) -> None:
    limits = httpx.Limits(max_connections=TOGETHER, max_keepalive_connections=TOGETHER)
    async with httpx.AsyncClient(
        base_url=served.bridge.url, headers={"x-api-key": api_key}, timeout=60, verify=NO_AUTHORITIES, limits=limits
    ) as http:
        places = asyncio.Semaphore(TOGETHER)

        async def one(number: int) -> None:
            async with places:
                try:
                    await _request(http, number)
                except (httpx.HTTPError, AssertionError) as error:
                    proof.failed(f"request {number}: {type(error).__name__}: {error}")
                else:
                    proof.passed(number >= 0)

        await asyncio.gather(*(one(number) for number in range(first, first + count)))


async def _request(http: httpx.AsyncClient, number: int) -> None:
    """A stream, a whole answer, or a stream that its client leaves; in new conversations and in old ones."""
    stream, leaves = number % 3 != 0, number % 7 == 0
    headers = {"x-conversation-id": f"c-{number // 5}"} if number % 2 else {}
    earlier = range(HISTORY if number < 0 else 0)
    history = [{"role": ("user", "assistant")[turn % 2], "content": _words(number, turn)} for turn in earlier]
    words = _words(number if number < 0 else number % SAYINGS, HISTORY)
    asked = body(*history, words, tools=[TOOL], stream=stream)
    async with http.stream("POST", "/v1/messages", json=asked, headers=headers) as response:
        assert response.status_code in (200, 502), await response.aread()
        async for _ in response.aiter_bytes():
            if leaves:
                return


def _words(number: int, turn: int) -> str:
    return f"Question {number}, {turn} " + "of some length " * 20


def _rested(served: Served) -> None:
    """Clients have gone, and so have their connections."""
    bridge = psutil.Process(served.bridge.pid)

    def quiet() -> bool:
        found = [each for each in bridge.net_connections() if each.status == "ESTABLISHED"]
        return sum(each.laddr.port == served.bridge.port for each in found) < 3

    wait_until(quiet, "the clients' connections are closed")
