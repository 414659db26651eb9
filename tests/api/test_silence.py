"""Slow upstreams, clients that leave, and a server that stops: nobody waits in silence, nothing runs on for nobody."""

import socket
import threading

import httpx
import pytest

from tests.api.conftest import BOTH, Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import CLOCK, TOOL, Client, body, folded, names, result, until
from tests.servers.ports import wait_until
from tests.servers.script import Gate, Raw, Silence, sse_answer


def test_the_status_line_is_held_then_pings_keep_the_stream_alive(serve: Serve, connect: Connect) -> None:
    served = serve(BRIDGE_HOLD_SECONDS="0.2", BRIDGE_PING_SECONDS="0.2")
    client = connect(served)
    first, second = Gate(), Gate()
    served.chat(
        sse_answer(first, chat.chunk({"content": "Hel"}), second, chat.chunk({"content": "lo"}), *chat.ending("stop"))
    )
    with client.stream("Hi") as (response, events):
        assert response.status_code == 200
        seen = [next(events), next(events)]
        assert names(seen) == ["ping", "ping"]
        first.open()
        seen += until(events, "content_block_delta")
        pings = until(events, "ping")
        assert names(pings) == ["ping"]
        second.open()
        seen += list(events)
    assert folded(seen) == [{"type": "text", "text": "Hello"}]


def test_an_error_after_the_hold_is_an_event(serve: Serve, connect: Connect) -> None:
    served = serve(BRIDGE_HOLD_SECONDS="0.1", BRIDGE_PING_SECONDS="0.1")
    client, gate = connect(served), Gate()
    served.chat(Raw((gate, b"HTTP/1.1 429 no\r\ncontent-length: 0\r\n\r\n")))
    with client.stream("Hi") as (response, events):
        assert response.status_code == 200
        assert next(events).name == "ping"
        gate.open()
        seen = list(events)
    assert seen[-1].data["error"]["type"] == "rate_limit_error"
    assert names(seen).count("error") == 1


@BOTH
def test_a_client_that_leaves_ends_the_upstream_call_and_the_turn_is_aborted(client: Client, served: Served) -> None:
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), Silence()))
    with client.stream("Hi") as (_, events):
        until(events, "content_block_delta")
    assert served.upstream.requests[0].abandoned.wait(1)
    (turn,) = served.records.ended(client.api_key, 1)
    assert (turn.status, turn.usage_estimated) == ("aborted", True)
    (entry,) = served.records.usage(client.api_key)
    assert (entry.status, entry.estimated) == ("aborted", True)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("answered", ["nothing", "headers", "something"])
def test_a_client_that_leaves_early_ends_the_upstream_call(
    client: Client, served: Served, stream: bool, answered: str
) -> None:
    gate = Gate()
    answer = {
        "nothing": Raw((gate, Silence())),
        "headers": sse_answer(gate, Silence()),
        "something": sse_answer(chat.chunk({"role": "assistant"}), gate, Silence()),
    }[answered]
    served.chat(answer)
    sock = _leaving(served, client, stream=stream)
    assert gate.reached.wait(10)
    gate.open()
    sock.close()
    assert served.upstream.requests[0].abandoned.wait(1)
    (turn,) = served.records.ended(client.api_key, 1)
    assert turn.status == "aborted"


def test_a_client_that_does_not_read_does_not_keep_the_turn_forever(client: Client, served: Served) -> None:
    """Its window is full when it leaves: the bridge is waiting to write, not to read."""
    gate = Gate()
    big = [chat.chunk({"content": "x" * 60_000}) for _ in range(400)]
    served.chat(sse_answer(*big, gate, Silence()))
    sock = _leaving(served, client, stream=True)
    assert served.upstream.wait_for_requests(1)
    assert sock.recv(1)
    sock.close()
    assert served.upstream.requests[0].abandoned.wait(10)
    (turn,) = served.records.ended(client.api_key, 1)
    assert turn.status == "aborted"


@BOTH
def test_calls_of_an_aborted_turn_are_known(client: Client, served: Served) -> None:
    one = chat.call_chunks(("call_1", "get_weather", {"city": "Oslo"}), ("call_2", "get_weather", {"city": "Rome"}))
    served.chat(sse_answer(*one[:4], Silence()), chat.text("ok"))
    with client.stream("Weather?", tools=[TOOL]) as (_, events):
        started = next(event for event in events if event.name == "content_block_start")
    served.records.ended(client.api_key, 1)
    tool_use_id = started.data["content_block"]["id"]
    response = client.ask(result(tool_use_id), tools=[TOOL])
    assert response.status_code == 200
    messages = served.sent()["messages"]
    assert [message["role"] for message in messages][:2] == ["user", "assistant"]
    assert messages[1]["tool_calls"][0]["id"] == "call_1"
    assert next(m for m in messages if m["role"] == "tool")["content"] == "sunny"


def test_a_call_that_comes_slowly_is_seen_before_it_is_whole(client: Client, served: Served) -> None:
    gate = Gate()
    head, *rest = chat.call_chunks(("call_1", "get_weather", {"city": "Oslo"}))
    served.chat(sse_answer(head, gate, *rest, *chat.ending("tool_calls")))
    with client.stream("Weather?", tools=[TOOL]) as (_, events):
        seen = until(events, "content_block_start")
        gate.open()
        seen += list(events)
    (call,) = folded(seen)
    assert (call["name"], call["input"]) == ("get_weather", {"city": "Oslo"})


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_the_token_limit_cuts_is_never_seen(client: Client, served: Served, stream: bool) -> None:
    """Clients run what they see, `max_tokens` or not. What came whole before it is no less whole."""
    whole = chat.call_chunks(("call_1", "get_weather", {"city": "Oslo"}))
    cut = chat.call_chunk(1, "", "call_2", "get_time")
    served.chat(sse_answer(*whole, cut, *chat.ending("length")))
    if stream:
        events = client.events("Weather?", tools=[TOOL, CLOCK])
        seen, reason = folded(events), events[-2].data["delta"]["stop_reason"]
    else:
        answer = client.ask("Weather?", tools=[TOOL, CLOCK]).json()
        seen, reason = answer["content"], answer["stop_reason"]
    assert [(call["name"], call["input"]) for call in seen] == [("get_weather", {"city": "Oslo"})]
    assert reason == "max_tokens"
    (conversation,) = client.conversations()
    assert [mapping["status"] for mapping in client.mappings(conversation["id"])] == ["pending", "truncated"]


def test_a_slow_call_that_was_seen_and_then_cut_by_the_token_limit_is_an_error(client: Client, served: Served) -> None:
    """Closed, it would be run without its arguments; a client that hears of an error asks again, and sees none."""
    gate = Gate()
    cut = chat.call_chunk(0, '{"ci', "call_1", "get_weather")
    served.chat(sse_answer(cut, gate, *chat.ending("length")), sse_answer(cut, *chat.ending("length")))
    with client.stream("Weather?", tools=[TOOL]) as (_, events):
        seen = until(events, "content_block_start")
        gate.open()
        seen += list(events)
    assert [event.name for event in seen] == ["message_start", "content_block_start", "error"]
    again = client.ask("Weather?", tools=[TOOL]).json()
    assert (again["content"], again["stop_reason"]) == ([], "max_tokens")


def test_a_server_that_stops_lets_turns_end_and_refuses_new_ones(serve: Serve, connect: Connect) -> None:
    served = serve()
    client, gate = connect(served), Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, chat.chunk({"content": "lo"}), *chat.ending("stop")))
    with client.stream("Hi") as (_, events):
        seen = until(events, "content_block_delta")
        stopping = threading.Thread(target=served.bridge.stop)
        stopping.start()
        wait_until(lambda: not _accepts(served), "it takes no more connections")
        gate.open()
        seen += list(events)
    stopping.join()
    assert folded(seen) == [{"type": "text", "text": "Hello"}]
    assert [turn.status for turn in served.records.turns(client.api_key)] == ["complete"]


def test_a_retry_that_waits_for_another_process_ends_with_its_own(serve: Serve, connect: Connect) -> None:
    """It is no turn of the process that stops: it was cut off without a word when the time was up."""
    running = serve()
    stopping = serve(running.database_url, BRIDGE_HOLD_SECONDS="0.2", BRIDGE_PING_SECONDS="1")
    client, headers = connect(running), {"x-conversation-id": "both"}
    other = Client(stopping.bridge.url, client.api_key)
    running.chat(chat.streamed_text("Hel", Silence()))
    with client.stream("Hi", headers=headers) as (_, first):
        until(first, "content_block_delta")
        with other.stream("Hi", headers=headers) as (_, events):
            seen = until(events, "ping")
            ending = threading.Thread(target=stopping.bridge.stop)
            ending.start()
            seen += list(events)
    ending.join()
    other.close()
    assert (seen[-1].name, seen[-1].data["error"]["type"]) == ("error", "overloaded_error")


def _leaving(served: Served, client: Client, *, stream: bool) -> socket.socket:
    """A request over a socket of its own, which can be closed at any time."""
    request = httpx.Request(
        "POST",
        f"{served.bridge.url}/v1/messages",
        json=body("Hi", stream=stream),
        headers={"x-api-key": client.api_key},
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    sock = socket.create_connection(("127.0.0.1", served.bridge.port))
    sock.sendall(f"POST /v1/messages HTTP/1.1\r\n{head}\r\n".encode() + request.content)
    return sock


def _accepts(served: Served) -> bool:
    try:
        socket.create_connection(("127.0.0.1", served.bridge.port), timeout=1).close()
    except OSError:
        return False
    return True
