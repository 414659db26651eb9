"""Upstreams that say nothing, for minutes: nobody is left without a sign of life, and nothing waits for ever."""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.api.conftest import Connect, Serve
from tests.servers import chat
from tests.servers.client import NO_AUTHORITIES, body
from tests.servers.ports import wait_until
from tests.servers.script import Answer, Pause, Raw, Recorded, Silence, sse_answer
from tests.servers.upstream import ScriptedUpstream
from tests.torture.ledger import SCALE, Proof, Trials

FULL = SCALE is not None
# The product's own defaults in full size; the suite is not given six minutes.
TIMES = {"HOLD": 15.0, "PING": 10.0, "IDLE": 300.0} if FULL else {"HOLD": 0.5, "PING": 0.5, "IDLE": 4.0}
HELD, GAP = (15.5, 12.0) if FULL else (10.0, 10.0)
LATE = 15.0  # seconds after the deadline by which it is told
QUIET = Pause(TIMES["IDLE"] / 3)
KINDS: dict[str, Answer | Raw] = {
    "nothing at all": Raw((Silence(),)),
    "a head and nothing more": sse_answer(Silence()),
    "a word, then nothing": sse_answer(chat.chunk({"content": "Hel"}), Silence()),
    "half a call, then nothing": sse_answer(*chat.call_chunks(("c", "get_weather", {"city": "Oslo"}))[:2], Silence()),
    "slow": sse_answer(QUIET, chat.chunk({"content": "a"}), QUIET, chat.chunk({"content": "b"}), *chat.ending("stop")),
}
ONCE = sse_answer(Pause(1.0), chat.chunk({"content": "once"}), *chat.ending("stop"))


@pytest.mark.proves("silence")
@pytest.mark.timeout(120)
def test_nobody_waits_in_silence_and_nothing_for_ever(
    serve: Serve, connect: Connect, proof: Proof, trials: Trials
) -> None:
    environment = {
        "BRIDGE_HOLD_SECONDS": str(TIMES["HOLD"]),
        "BRIDGE_PING_SECONDS": str(TIMES["PING"]),
        "BRIDGE_UPSTREAM_IDLE_SECONDS": str(TIMES["IDLE"]),
    }
    with Silent() as upstream:
        served = serve(OPENAI_BASE_URL=f"{upstream.url}/openai/v1", **environment)
        streams = max(len(KINDS), trials(100, 10))
        asyncio.run(_all(served.bridge.url, connect(served).api_key, upstream, streams, proof))


class Silent(ScriptedUpstream):
    """Each question gets the kind of answer that its number says."""

    def _answer_for(self, request: Recorded) -> Answer | Raw:
        self.requests.append(request)
        asked = request.json()["messages"][-1]["content"]
        number = asked.removeprefix("Question ")
        return KINDS[kind_of(int(number))] if number.isdigit() else ONCE

    def questions(self, words: str) -> int:
        return sum(request.json()["messages"][-1]["content"] == words for request in list(self.requests))


def kind_of(number: int) -> str:
    return list(KINDS)[number % len(KINDS)]


async def _all(url: str, api_key: str, upstream: Silent, streams: int, proof: Proof) -> None:
    limits, timeout = httpx.Limits(max_connections=None), TIMES["IDLE"] + 60
    async with httpx.AsyncClient(
        base_url=url, headers={"x-api-key": api_key}, timeout=timeout, verify=NO_AUTHORITIES, limits=limits
    ) as http:
        running = [asyncio.create_task(_resent(http, upstream, proof))]
        for number in range(streams):
            running.append(asyncio.create_task(_stream(http, number, kind_of(number), proof)))
            await asyncio.sleep(0.05)  # a hundred connections at once would be another test
        await asyncio.gather(*running)


async def _stream(http: httpx.AsyncClient, number: int, kind: str, proof: Proof) -> None:
    began = time.monotonic()
    with proof.trial(f"stream {number}, {kind}"):
        async with http.stream("POST", "/v1/messages", json=body(f"Question {number}", stream=True)) as response:
            held = time.monotonic() - began
            proof.worst("longest hold, seconds", held)
            assert response.status_code == 200
            assert held <= HELD, f"the status was held for {held:.1f} s"
            async with asyncio.timeout(TIMES["IDLE"] + 2 * LATE):
                content, gap = await _read(response.aiter_bytes())
        lasted = time.monotonic() - began
        proof.worst("longest gap, seconds", gap)
        assert gap <= GAP, f"a gap of {gap:.1f} s"
        if kind == "slow":
            assert content.count(b"event: message_stop") == 1
            assert b"event: error" not in content
        else:
            assert content.count(b"event: error") == 1, content[-500:]
            assert b"message_stop" not in content
            assert TIMES["IDLE"] - 1 <= lasted <= TIMES["IDLE"] + LATE, f"it lasted {lasted:.1f} s"


async def _read(chunks: AsyncIterator[bytes]) -> tuple[bytes, float]:
    content, gap, last = b"", 0.0, time.monotonic()
    async for chunk in chunks:
        gap, last = max(gap, time.monotonic() - last), time.monotonic()
        content += chunk
    return content, gap


async def _resent(http: httpx.AsyncClient, upstream: Silent, proof: Proof) -> None:
    """A client that lost patience asks again, while the first answer is still on its way."""
    words, headers = "The same question", {"x-conversation-id": "same"}
    with proof.trial("an identical resend in flight"):
        asked = body(words, stream=True)
        first = asyncio.create_task(http.post("/v1/messages", json=asked, headers=headers))
        await asyncio.to_thread(wait_until, lambda: upstream.questions(words) == 1, "it is being answered")
        again = await http.post("/v1/messages", json=asked, headers=headers | {"x-stainless-retry-count": "1"})
        assert "once" in again.text
        assert "once" in (await first).text
        assert upstream.questions(words) == 1
