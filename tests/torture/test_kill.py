"""Promise 1: the server is killed in the middle of answers; whatever a client had seen by then is known afterwards.

A stream stands still where its upstream stops talking; the ping that follows tells that everything before was shown.
Many streams stand still at different places, then one SIGKILL hits them all.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.api.conftest import Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import CLOCK, TOOL, Client, Event, body, read_events, result
from tests.servers.script import Answer, Silence, sse_answer
from tests.torture.ledger import Proof, Trials

BATCH = 40  # streams that one kill ends

OSLO = ("call_1", "get_weather", {"city": "Oslo ☃"})
TIME = ("call_2", "get_time", {"zone": "CET"})
EAGER = [{**tool, "eager_input_streaming": True} for tool in (TOOL, CLOCK)]

# kind of turn: (chunks of the upstream's answer, tools)
KINDS: dict[str, tuple[list[bytes], list[dict[str, Any]]]] = {
    "text": ([chat.chunk({"content": word}) for word in ("Hello ", "wörld", ".")] + chat.ending("stop"), []),
    "one call": (chat.call_chunks(OSLO) + chat.ending("tool_calls"), [TOOL]),
    "parallel calls": (
        [chat.chunk({"content": "Let me see."}), *chat.call_chunks(OSLO, TIME), *chat.ending("tool_calls")],
        [TOOL, CLOCK],
    ),
    "eager calls": (chat.call_chunks(OSLO, TIME) + chat.ending("tool_calls"), EAGER),
    "calls in one piece": ([b"".join(chat.call_chunks(OSLO, TIME)), *chat.ending("tool_calls")], [TOOL, CLOCK]),
    "thinking, then a call": (
        [chat.chunk({"reasoning_content": "Hm."}), *chat.call_chunks(OSLO), *chat.ending("tool_calls")],
        [TOOL],
    ),
}


@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"])
def test_killed_at_every_event_boundary_of_parallel_calls(
    serve: Serve, connect: Connect, request: pytest.FixtureRequest, database_kind: str
) -> None:
    url = request.getfixturevalue("postgres_url") if database_kind == "postgres" else None
    chunks, tools = KINDS["parallel calls"]
    answers = [sse_answer(*chunks[:count], Silence()) for count in range(1, len(chunks))]
    seen = _kill(_start(serve, url), connect, answers, tools)
    assert (seen[0], seen[-1]) == (0, 2)


@pytest.mark.proves("kill")
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_byte(serve: Serve, connect: Connect, kind: str, proof: Proof, trials: Trials) -> None:
    chunks, tools = KINDS[kind]
    whole = b"".join(chunks)
    places = range(1, len(whole))
    count = min(len(places), trials(len(places), 30))
    chosen = sorted(random.Random(kind).sample(places, count))
    served = _start(serve, None)
    for start in range(0, len(chosen), BATCH):
        answers = [sse_answer(whole[:place], Silence()) for place in chosen[start : start + BATCH]]
        _kill(served, connect, answers, tools)
        proof.passed(len(answers))


def test_an_answer_that_was_complete_is_known_as_a_whole(serve: Serve, connect: Connect) -> None:
    """Killed right after `message_stop`: a continued thread finds everything."""
    served = _start(serve, None)
    client = connect(served)
    served.chat(chat.streamed_calls(OSLO, TIME), chat.text("ok"))
    events = client.events("Go", tools=[TOOL, CLOCK], thread={"type": "create"})
    served.bridge.crash()
    served.bridge.start()
    ids = [event.data["content_block"]["id"] for event in events if event.name == "content_block_start"]
    results = [block for id_ in ids for block in result(id_)["content"]]
    thread = {"type": "continue", "previous_message_id": events[0].data["message"]["id"]}
    assert client.ask({"role": "user", "content": results}, thread=thread).status_code == 200
    assert [call["id"] for call in served.sent()["messages"][1]["tool_calls"]] == ["call_1", "call_2"]


def _start(serve: Serve, url: str | None) -> Served:
    return serve(url, BRIDGE_HOLD_SECONDS="0.05", BRIDGE_PING_SECONDS="0.2")


def _kill(served: Served, connect: Connect, answers: list[Answer], tools: list[dict[str, Any]]) -> list[int]:
    """How many calls the client of each answer had seen when the server died."""
    client = connect(served)
    with ExitStack() as streams:
        seen = []
        for number, answer in enumerate(answers):
            served.upstream.reset()
            served.chat(answer)
            asked = body(f"Question {number}", tools=tools, stream=True)
            response = streams.enter_context(client.http.stream("POST", "/v1/messages", json=asked))
            assert response.status_code == 200
            seen.append(read_events(response))
            served.upstream.wait_for_requests(1)
        shown = [_until_quiet(events) for events in seen]
        served.bridge.crash()
    client.http.close()
    served.bridge.start()
    again = Client(served.bridge.url, client.api_key)
    for number, events in enumerate(shown):
        for block in _calls(events):
            _resolves(again, served, block, tools, f"Question {number}")
    again.close()
    return [len(_calls(events)) for events in shown]


def _until_quiet(events: Iterator[Event]) -> list[Event]:
    seen: list[Event] = []
    for event in events:
        if event.name == "ping":
            return seen
        seen.append(event)
        if event.name == "message_stop":
            return seen
    raise AssertionError(f"the stream ended by itself: {seen}")


def _calls(events: list[Event]) -> list[dict[str, Any]]:
    blocks = [event.data["content_block"] for event in events if event.name == "content_block_start"]
    return [block for block in blocks if block["type"] == "tool_use"]


def _resolves(
    client: Client, served: Served, block: dict[str, Any], tools: list[dict[str, Any]], question: str
) -> None:
    """A lone result for it is answered, with its name and the upstream's id."""
    served.upstream.reset()
    served.chat(chat.text("ok"))
    response = client.ask(result(block["id"], "found"), tools=tools)
    assert response.status_code == 200, response.text
    messages = served.sent()["messages"]
    assert messages[0] == {"role": "user", "content": question}
    answered = next(message for message in messages if message["role"] == "tool" and message["content"] == "found")
    call = next(call for call in messages[1]["tool_calls"] if call["id"] == answered["tool_call_id"])
    expected = {name: id_ for id_, name, _ in (OSLO, TIME)}[block["name"]]
    assert (call["id"], call["function"]["name"]) == (expected, block["name"])
