"""The same request again while its turn runs here: one turn, one call of the upstream, several who read it."""

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.api.conftest import BOTH, Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import TOOL, Client, Event, body, folded, names, until
from tests.servers.ports import wait_until
from tests.servers.script import Abort, Gate, Silence, Step, sse_answer
from tests.servers.upstream import ScriptedUpstream

NAMED = {"x-conversation-id": "shared"}
CALL = ("call_1", "get_weather", {"city": "Oslo"})


def hello(*between: Step) -> Any:
    return sse_answer(chat.chunk({"content": "Hel"}), *between, chat.chunk({"content": "lo"}), *chat.ending("stop"))


def written(*events: Event) -> list[Event]:
    return [event for event in events if event.name != "ping"]


def attached(served: Served, count: int = 1) -> None:
    """So many requests have joined a turn that runs, in the life of this bridge."""
    wait_until(
        lambda: len(re.findall("attaches to the turn", served.bridge.log.read_text())) >= count, "it is attached"
    )


def asking(served: Served, client: Client, *, stream: bool) -> socket.socket:
    """A request over a socket of its own, which can be closed at any time, or not be read."""
    headers = {"x-api-key": client.api_key, "connection": "close", **NAMED}
    asked = httpx.Request("POST", f"{served.bridge.url}/v1/messages", json=body("Hi", stream=stream), headers=headers)
    head = "".join(f"{name}: {value}\r\n" for name, value in asked.headers.items())
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # little is taken from the bridge that nobody reads
    sock.connect(("127.0.0.1", served.bridge.port))
    sock.sendall(f"POST /v1/messages HTTP/1.1\r\n{head}\r\n".encode() + asked.content)
    return sock


def heard(sock: socket.socket) -> bytes:
    """All that is left to be read."""
    with sock:
        return b"".join(iter(lambda: sock.recv(65536), b""))


@BOTH
def test_a_repeat_hears_the_running_turn_from_its_beginning(client: Client, served: Served) -> None:
    gate = Gate()
    calls = chat.call_chunks(CALL, ("call_2", "get_weather", {"city": "Rome"}))
    served.chat(sse_answer(chat.chunk({"content": "Let me see."}), *calls, gate, *chat.ending("tool_calls")))
    asked: dict[str, Any] = {"tools": [TOOL], "headers": NAMED}
    with client.stream("Weather?", **asked) as (_, first), client.stream("Weather?", **asked) as (response, second):
        assert response.headers["x-conversation-id"] == "shared"
        seen = [until(events, "content_block_stop") for events in (first, second)]
        gate.open()
        seen = [told + list(events) for told, events in zip(seen, (first, second), strict=True)]
    assert written(*seen[0]) == written(*seen[1])
    assert [block["type"] for block in folded(seen[1])] == ["text", "tool_use", "tool_use"]
    assert len(served.upstream.requests) == 1
    assert served.records.turns(client.api_key).count() == 1
    assert served.records.usage(client.api_key).count() == 1


@BOTH
def test_the_turn_goes_on_when_the_first_client_leaves(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(hello(gate))
    with client.stream("Hi", headers=NAMED) as (_, second):
        with client.stream("Hi", headers=NAMED) as (_, first):
            until(first, "content_block_delta")
            seen = until(second, "content_block_delta")
        assert not served.upstream.requests[0].abandoned.wait(0.3)
        gate.open()
        seen += second
    assert folded(seen) == [{"type": "text", "text": "Hello"}]
    (turn,) = served.records.ended(client.api_key, 1)
    assert turn.status == "complete"
    assert len(served.upstream.requests) == 1


@pytest.mark.parametrize("leaves", ["first", "second"])
def test_whoever_stays_gets_the_whole_answer(client: Client, served: Served, leaves: str) -> None:
    gate = Gate()
    served.chat(hello(gate))
    with client.stream("Hi", headers=NAMED) as (one, first), client.stream("Hi", headers=NAMED) as (two, second):
        seen = [until(events, "content_block_delta") for events in (first, second)]
        (one if leaves == "first" else two).close()
        stays, told = (second, seen[1]) if leaves == "first" else (first, seen[0])
        gate.open()
        told += stays
    assert folded(told) == [{"type": "text", "text": "Hello"}]
    assert len(served.upstream.requests) == 1


def test_the_upstream_is_given_up_when_the_last_client_has_left(client: Client, served: Served) -> None:
    served.chat(hello(Silence()))
    with client.stream("Hi", headers=NAMED) as (one, first), client.stream("Hi", headers=NAMED) as (two, second):
        for events in (first, second):
            until(events, "content_block_delta")
        one.close()
        assert not served.upstream.requests[0].abandoned.wait(0.3)
        two.close()
        assert served.upstream.requests[0].abandoned.wait(1)
    (turn,) = served.records.ended(client.api_key, 1)
    assert turn.status == "aborted"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stays", [True, False])
def test_a_client_that_leaves_before_the_upstream_has_said_anything(
    serve: Serve, connect: Connect, stream: bool, stays: bool
) -> None:
    served = serve(BRIDGE_LOG_LEVEL="INFO")
    client, gate = connect(served), Gate()
    served.chat(sse_answer(gate, *hello().steps))
    first = asking(served, client, stream=stream)
    assert gate.reached.wait(10)
    second = asking(served, client, stream=stream)
    attached(served)
    first.close()
    assert not served.upstream.requests[0].abandoned.wait(0.3)
    if stays:
        gate.open()
        assert b"message_stop" in heard(second) if stream else b'"text":"Hello"' in heard(second)
    else:
        second.close()
        assert served.upstream.requests[0].abandoned.wait(1)
    (turn,) = served.records.ended(client.api_key, 1)
    assert turn.status == ("complete" if stays else "aborted")
    assert len(served.upstream.requests) == 1


BIG = [chat.chunk({"content": "x" * 60_000}) for _ in range(120)]


@pytest.mark.parametrize("stalls", ["first", "second"])
def test_a_client_that_does_not_read_does_not_hold_the_other_up(
    client: Client, served: Served, connect: Connect, stalls: str
) -> None:
    """The answer is far larger than what a connection takes from who does not read."""
    gate = Gate()
    served.chat(sse_answer(chat.chunk({"content": "x"}), gate, *BIG, *chat.ending("stop")))
    if stalls == "first":
        stalled = asking(served, client, stream=True)
        assert gate.reached.wait(10)
        with client.stream("Hi", headers=NAMED) as (_, events):
            seen = until(events, "content_block_delta")
            gate.open()
            seen += events
    else:
        with client.stream("Hi", headers=NAMED) as (_, events):
            seen = until(events, "content_block_delta")
            stalled = asking(served, client, stream=True)
            assert stalled.recv(1, socket.MSG_PEEK)
            gate.open()
            seen += events
    assert seen[-1].name == "message_stop", seen[-1]
    assert len(folded(seen)[0]["text"]) == 1 + 120 * 60_000
    (turn,) = served.records.ended(client.api_key, 1)
    assert turn.status == "complete"
    late = heard(stalled)
    assert late.count(b"event: message_stop") == 1
    assert late.count(b"x" * 60_000) == 120
    assert len(served.upstream.requests) == 1


def test_a_first_client_that_was_stalled_already_does_not_hold_up_who_comes(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(sse_answer(*BIG, gate, *chat.ending("stop")))
    stalled = asking(served, client, stream=True)
    assert stalled.recv(1, socket.MSG_PEEK)
    with client.stream("Hi", headers=NAMED) as (_, events):
        seen = until(events, "content_block_delta")
        gate.open()
        seen += events
    assert seen[-1].name == "message_stop", seen[-1]
    assert len(folded(seen)[0]["text"]) == 120 * 60_000
    assert heard(stalled).count(b"event: message_stop") == 1
    assert len(served.upstream.requests) == 1


@BOTH
def test_everybody_hears_that_the_conversation_was_terminated(client: Client, served: Served) -> None:
    served.chat(hello(Silence()), chat.text("Anew."))
    with client.stream("Hi", headers=NAMED) as (_, first), client.stream("Hi", headers=NAMED) as (_, second):
        seen = [until(events, "content_block_delta") for events in (first, second)]
        assert client.http.post("/v1/conversations/shared/terminate").json()["deleted"]["turns"] == 1
        seen = [told + list(events) for told, events in zip(seen, (first, second), strict=True)]
    for told in seen:
        assert told[-1].name == "error"
        assert names(told).count("error") == 1
    assert client.http.get("/v1/conversations/shared").status_code == 404
    assert client.ask("Hi", stream=True, headers=NAMED).text.count("Anew.") == 1


def test_everybody_hears_that_the_upstream_broke_off(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(hello(gate, Abort()), chat.streamed_text("Anew."))
    with client.stream("Hi", headers=NAMED) as (_, first), client.stream("Hi", headers=NAMED) as (_, second):
        seen = [until(events, "content_block_delta") for events in (first, second)]
        gate.open()
        seen = [told + list(events) for told, events in zip(seen, (first, second), strict=True)]
    assert [(told[-1].name, names(told).count("error")) for told in seen] == [("error", 1), ("error", 1)]
    (turn,) = served.records.ended(client.api_key, 1)
    assert turn.status == "error"
    assert folded(client.events("Hi", headers=NAMED))[0]["text"] == "Anew."


@pytest.mark.parametrize("stream", [False, True])
def test_a_repeat_takes_over_from_a_turn_that_had_nothing_to_show(serve: Serve, connect: Connect, stream: bool) -> None:
    served = serve()
    client, gate = connect(served), Gate()
    served.chat(sse_answer(gate, Abort()), chat.streamed_text("Hello"))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(client.ask, "Hi", stream=stream, headers=NAMED)
        assert gate.reached.wait(10)
        second = pool.submit(client.ask, "Hi", stream=stream, headers=NAMED)
        attached(served)
        gate.open()
        assert first.result(20).status_code == 502
        assert "Hello" in second.result(20).text
    assert [turn.status for turn in served.records.turns(client.api_key)] == ["error", "complete"]


def test_a_third_client_attaches_to_the_turn_of_a_second_one_that_took_over(serve: Serve, connect: Connect) -> None:
    served = serve()
    client, failing, gate = connect(served), Gate(), Gate()
    served.chat(sse_answer(failing, Abort()), hello(gate))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(client.ask, "Hi", stream=True, headers=NAMED)
        assert failing.reached.wait(10)
        second = asking(served, client, stream=True)
        attached(served)
        failing.open()
        assert first.result(20).status_code == 502
    assert gate.reached.wait(10)
    with client.stream("Hi", headers=NAMED) as (_, events):
        seen = until(events, "content_block_delta")
        second.close()
        assert not served.upstream.requests[1].abandoned.wait(0.3)
        gate.open()
        seen += events
    assert folded(seen) == [{"type": "text", "text": "Hello"}]
    assert len(served.upstream.requests) == 2


def test_a_quiet_turn_keeps_everybody_waiting_with_pings(serve: Serve, connect: Connect) -> None:
    served = serve(BRIDGE_PING_SECONDS="0.2")
    client, gate = connect(served), Gate()
    served.chat(hello(gate))
    with client.stream("Hi", headers=NAMED) as (_, first), client.stream("Hi", headers=NAMED) as (_, second):
        seen = [until(events, "ping") + until(events, "ping") for events in (first, second)]
        gate.open()
        seen = [told + list(events) for told, events in zip(seen, (first, second), strict=True)]
    assert written(*seen[0]) == written(*seen[1])
    assert folded(written(*seen[0])) == [{"type": "text", "text": "Hello"}]


def test_anthropics_own_words_are_passed_on_to_everybody(
    serve: Serve, connect: Connect, shared_upstream: ScriptedUpstream
) -> None:
    served = serve(ANTHROPIC_API_KEY="sk-ant-x", ANTHROPIC_UPSTREAM_URL=f"{shared_upstream.url}/v1")
    client, gate = connect(served), Gate()
    usage = {"input_tokens": 5, "output_tokens": 6, "service_tier": "priority"}
    message = {"id": "msg_01", "type": "message", "role": "assistant", "model": "claude-x", "usage": usage}
    said: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello", "unknown": 1}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "container": {"id": "c_1"}}, "usage": usage},
        {"type": "message_stop"},
    ]
    frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in said]
    shared_upstream.queue("/v1/messages", sse_answer(*frames[:3], gate, *frames[3:]))
    asked: dict[str, Any] = {"model": "anthropic/claude-x", "headers": NAMED}
    with client.stream("Hi", **asked) as (_, first), client.stream("Hi", **asked) as (_, second):
        seen = [until(events, "content_block_delta") for events in (first, second)]
        gate.open()
        seen = [told + list(events) for told, events in zip(seen, (first, second), strict=True)]
    assert [event.data for event in written(*seen[0])] == said
    assert seen[0] == seen[1]
    assert len(shared_upstream.requests) == 1


def test_a_client_of_openais_api_attaches_too(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(hello(gate))
    asked = {"model": "gpt-test", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    path = "/v1/chat/completions"
    with (
        client.http.stream("POST", path, json=asked, headers=NAMED) as first,
        client.http.stream("POST", path, json=asked, headers=NAMED) as second,
    ):
        lines = [response.iter_lines() for response in (first, second)]
        seen = [[next(line for line in each if '"Hel"' in line)] for each in lines]
        gate.open()
        seen = [told + list(rest) for told, rest in zip(seen, lines, strict=True)]
    assert [told[-2] for told in seen] == ["data: [DONE]"] * 2
    assert ['"lo"' in "".join(told) for told in seen] == [True, True]
    assert len(served.upstream.requests) == 1


def test_the_same_continuation_of_a_thread_attaches_and_another_one_is_refused(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(chat.text("One."), hello(gate))
    previous = client.ask("Hi", thread={"type": "create"}).json()["id"]
    go_on: dict[str, Any] = {"thread": {"type": "continue", "previous_message_id": previous}}
    with client.stream("Go on.", **go_on) as (_, first), client.stream("Go on.", **go_on) as (_, second):
        seen = [until(events, "content_block_delta") for events in (first, second)]
        refused = client.ask("Another way.", **go_on).json()["error"]
        assert refused["details"]["error_code"] == "thread_continue_in_flight"
        gate.open()
        seen = [told + list(events) for told, events in zip(seen, (first, second), strict=True)]
    assert written(*seen[0]) == written(*seen[1])
    assert seen[0][-1].name == "message_stop"
    assert len(served.upstream.requests) == 2


def test_a_repeat_needs_no_place_of_its_own(client: Client, served: Served) -> None:
    served.records.change(client.api_key, concurrent_streams=1)
    gate = Gate()
    served.chat(hello(gate), chat.text("Again."))
    with client.stream("Hi", headers=NAMED) as (_, first), client.stream("Hi", headers=NAMED) as (response, second):
        assert response.status_code == 200
        seen = [until(events, "content_block_delta") for events in (first, second)]
        other = client.ask("Another one.", headers=NAMED)
        assert (other.status_code, other.json()["error"]["type"]) == (429, "rate_limit_error")
        assert client.ask("Hi", stream=True).status_code == 429, "an equal body alone is another request"
        gate.open()
        seen = [told + list(events) for told, events in zip(seen, (first, second), strict=True)]
    assert written(*seen[0]) == written(*seen[1])
    assert len(served.upstream.requests) == 1
    assert client.ask("Another one.", headers=NAMED).status_code == 200, "the one place is free again"


@BOTH
def test_a_retry_of_what_said_nothing_of_retries_needs_no_place_of_its_own(client: Client, served: Served) -> None:
    """Only a turn that begins could give its first request a claim: the retry was a 429."""
    served.records.change(client.api_key, concurrent_streams=1)
    gate = Gate()
    served.chat(hello(gate))
    retry = {"x-stainless-retry-count": "1"}
    with client.stream("Hi") as (_, first):
        seen = until(first, "content_block_delta")
        assert client.ask("Another one.", headers=retry).status_code == 429
        with client.stream("Hi", headers=retry) as (response, second):
            assert response.status_code == 200, response.read()
            gate.open()
            again = list(second)
        seen += first
    assert written(*seen) == written(*again)
    assert len(served.upstream.requests) == 1


def test_a_repeat_costs_nothing_of_the_keys_budget(client: Client, served: Served) -> None:
    served.records.change(client.api_key, daily_tokens=1, requests_per_minute=4)
    gate = Gate()
    served.chat(hello(gate))
    with client.stream("Hi", headers=NAMED) as (_, first), client.stream("Hi", headers=NAMED) as (response, second):
        assert response.status_code == 200, response.read()
        seen = [until(events, "content_block_delta") for events in (first, second)]
        other = client.ask("Another one.", headers=NAMED)
        assert (other.status_code, other.json()["error"]["type"]) == (402, "billing_error")
        gate.open()
        seen = [told + list(events) for told, events in zip(seen, (first, second), strict=True)]
    assert written(*seen[0]) == written(*seen[1])
    stored = client.events("Hi", headers=NAMED)
    assert (stored[0].data["message"]["id"], folded(stored)) == (seen[0][0].data["message"]["id"], folded(seen[0]))
    assert len(served.upstream.requests) == 1
    assert client.ask("Hi", headers=NAMED).status_code == 429, "each of the four counted once"


def test_a_repeat_counts_as_a_request_of_the_keys_rate(client: Client, served: Served) -> None:
    served.records.change(client.api_key, concurrent_streams=1, requests_per_minute=2)
    gate = Gate()
    served.chat(hello(gate))
    with client.stream("Hi", headers=NAMED) as (_, first), client.stream("Hi", headers=NAMED) as (_, second):
        until(second, "content_block_delta")
        refused = client.ask("Hi", stream=True, headers=NAMED)
        assert (refused.status_code, "requests per minute" in refused.text) == (429, True)
        gate.open()
        assert list(first)[-1].name == "message_stop"


def test_nobody_attaches_to_the_turn_of_another_key(client: Client, other_client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(hello(gate), chat.streamed_text("Mine."))
    with client.stream("Hi", headers=NAMED) as (_, events):
        seen = until(events, "content_block_delta")
        assert folded(other_client.events("Hi", headers=NAMED)) == [{"type": "text", "text": "Mine."}]
        gate.open()
        seen += events
    assert folded(seen) == [{"type": "text", "text": "Hello"}]
