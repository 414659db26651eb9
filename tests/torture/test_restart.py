"""SIGTERM among many streams: each ends well or in `event: error`, and what was shown is known afterwards."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.api.conftest import Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import NO_AUTHORITIES, TOOL, Client, Event, body, folded, names, read_events, result
from tests.servers.script import Answer, Pause, Silence, sse_answer
from tests.torture.ledger import SCALE, Proof, Trials

STREAMS = 50 if SCALE is not None else 20
CALL = ("call_1", "get_weather", {"city": "Oslo"})


def answer_of(number: int) -> Answer:
    """Some end soon, some within the grace period, and some never."""
    chosen = random.Random(number)
    chunks: list[bytes | Pause | Silence] = [chat.chunk({"content": f"Stream {number}."}), *chat.call_chunks(CALL)]
    if number % 10 == 0 and SCALE is not None:
        return sse_answer(*chunks, Silence())
    return sse_answer(
        *chunks, Pause(chosen.uniform(0.2, 5.0 if SCALE is not None else 2.0)), *chat.ending("tool_calls")
    )


@pytest.mark.proves("restart")
@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"] if SCALE is not None else ["sqlite"])
def test_streams_end_well_or_say_that_they_do_not(
    serve: Serve, connect: Connect, request: pytest.FixtureRequest, database_kind: str, proof: Proof, trials: Trials
) -> None:
    served = serve(request.getfixturevalue("postgres_url") if database_kind == "postgres" else None)
    for number in range(trials(10, 1)):
        with proof.trial(f"{database_kind}, restart {number}"):
            _restart(served, connect, proof)


def _restart(served: Served, connect: Connect, proof: Proof) -> None:
    client = connect(served)
    served.upstream.reset()
    served.chat(*(answer_of(number) for number in range(STREAMS)))
    with ThreadPoolExecutor(STREAMS) as pool:
        begun = threading.Semaphore(0)
        streams = [pool.submit(_stream, served, client.api_key, number, begun) for number in range(STREAMS)]
        for _ in range(STREAMS):
            assert begun.acquire(timeout=60)
        stopping = time.monotonic()
        served.bridge.stop()
        proof.worst("seconds until it has stopped", time.monotonic() - stopping)
        seen = [stream.result(60) for stream in streams]
    served.bridge.start()
    for events in seen:
        blocks = folded([event for event in events if event.name not in ("ping", "comment")])  # one terminator
        if names(events)[-1] == "error":
            assert events[-1].data["error"]["type"] in ("overloaded_error", "api_error")
        assert blocks[0]["text"].startswith("Stream")
    served.records.reconnect()
    statuses = {turn.status for turn in served.records.turns(client.api_key)}
    assert statuses <= {"complete", "error"}, statuses
    _known(served, client, seen)


def _stream(served: Served, api_key: str, number: int, begun: threading.Semaphore) -> list[Event]:
    """On a connection of its own, as many clients have."""
    with (
        httpx.Client(
            base_url=served.bridge.url, headers={"x-api-key": api_key}, timeout=60, verify=NO_AUTHORITIES
        ) as http,
        http.stream("POST", "/v1/messages", json=body(f"Go {number}", tools=[TOOL], stream=True)) as response,
    ):
        assert response.status_code == 200
        seen: list[Event] = []
        for event in read_events(response):
            seen.append(event)
            if event.name == "content_block_start" and event.data["content_block"]["type"] == "tool_use":
                begun.release()
        return seen


def _known(served: Served, client: Client, seen: list[list[Event]]) -> None:
    ids = [
        event.data["content_block"]["id"]
        for events in seen
        for event in events
        if event.name == "content_block_start" and event.data["content_block"]["type"] == "tool_use"
    ]
    assert len(ids) == STREAMS
    kept = set(served.records.rows("ToolMapping").filter(tool_use_id__in=ids).values_list("tool_use_id", flat=True))
    assert kept == set(ids)
    served.chat(chat.text("ok"))
    again = Client(served.bridge.url, client.api_key)
    assert again.ask(result(ids[0]), tools=[TOOL]).status_code == 200
    again.close()
