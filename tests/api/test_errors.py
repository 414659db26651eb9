"""DESIGN.md section 6, row by row: what the client sees of each thing that can go wrong upstream."""
# ruff: noqa: E501 - a table reads best in its own lines

import gzip
import time
import zlib
from email.utils import formatdate
from typing import Any

import pytest

from tests.api.conftest import Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import TOOL, Client, folded, names
from tests.servers.ports import free_port
from tests.servers.script import Abort, Answer, Pause, Raw, Silence, json_answer, sse_answer

HTML = Answer((b"<html><body>502 Bad Gateway secret-host</body></html>",), 502, {"content-type": "text/html"})
OVERFLOW = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 200000 tokens. "
    "Please reduce the length of the messages."
)

# name: (upstream's answer, status, error type, part of the message, headers)
ROWS: dict[str, tuple[Any, int, str, str, dict[str, str | None]]] = {
    "400 with all its words": (
        chat.error(400, "Invalid schema", type="invalid_request_error", param="tools[0]", code="bad"),
        400, "invalid_request_error", "Invalid schema (Param: tools[0]) (Type: invalid_request_error)", {},
    ),
    "overflow": (
        chat.error(400, OVERFLOW, code="context_length_exceeded"),
        400, "invalid_request_error", "prompt is too long: 200000 tokens > 128000 maximum", {},
    ),
    "401": (chat.error(401, "Incorrect API key"), 502, "api_error", "the bridge's upstream key was refused", {"x-should-retry": "false"}),
    "403": (chat.error(403, "Forbidden"), 502, "api_error", "the bridge's upstream key was refused", {"x-should-retry": "false"}),
    "a redirect": (Answer((b"<a href>",), 301, {"location": "https://elsewhere"}), 502, "api_error", "redirect (HTTP 301)", {"x-should-retry": "false"}),
    "404": (chat.error(404, "The model does not exist"), 404, "not_found_error", "The model does not exist", {}),
    "429": (chat.error(429, "Slow down", {"retry-after": "7"}), 429, "rate_limit_error", "Slow down", {"retry-after": "7"}),
    "429 for want of money": (chat.error(429, "You exceeded your current quota", code="insufficient_quota"), 429, "rate_limit_error", "You exceeded", {"x-should-retry": "false"}),
    "429 in milliseconds": (chat.error(429, "Slow", {"retry-after-ms": "1500"}), 429, "rate_limit_error", "Slow", {"retry-after": "2"}),
    "529": (chat.error(529, "Overloaded", {"retry-after": "3"}), 529, "overloaded_error", "Overloaded", {"retry-after": "3"}),
    "503": (chat.error(503, "Unavailable", {"retry-after": "4"}), 529, "overloaded_error", "Unavailable", {"retry-after": "4"}),
    "500": (chat.error(500, "Oops"), 502, "api_error", "Oops", {}),
    "504": (chat.error(504, "Too slow"), 504, "timeout_error", "Too slow", {}),
    "HTML": (HTML, 502, "api_error", "the upstream answered 502 without a readable error", {}),
    "HTML with 200": (Answer((b"<html>hello</html>",), 200, {"content-type": "text/html"}), 502, "api_error", "", {}),
    "garbage": (Answer((b"\x00\xff{{{",), 200, {"content-type": "application/json"}), 502, "api_error", "", {}),
    "not HTTP": (Raw((b"SSH-2.0-OpenSSH\r\n",)), 502, "api_error", "", {}),
    "closed at once": (Raw(()), 502, "api_error", "", {}),
    "no choices": (json_answer({"id": "x", "choices": []}), 502, "api_error", "", {}),
    "an error inside 200": (json_answer({"error": {"message": "busy", "code": 429}}), 429, "rate_limit_error", "busy", {}),
    "an empty stream": (sse_answer(), 502, "api_error", "", {}),
    "a stream that is cut at once": (sse_answer(Abort()), 502, "api_error", "", {}),
    "an error as first event": (
        sse_answer(chat.sse({"error": {"message": "busy", "type": "overloaded_error", "code": 529}})),
        529, "overloaded_error", "busy", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("row", ROWS)
def test_before_anything_is_shown_an_upstreams_fault_is_a_real_status(
    client: Client, served: Served, row: str, stream: bool
) -> None:
    answer, status, kind, words, headers = ROWS[row]
    served.chat(answer)
    response = client.ask("Hi", stream=stream, headers={"x-conversation-id": "c"})
    found = response.json()
    assert (response.status_code, found["type"], found["error"]["type"]) == (status, "error", kind)
    assert words in found["error"]["message"]
    assert "secret" not in response.text
    assert found["request_id"] == response.headers["request-id"]
    assert {name: response.headers.get(name) for name in headers} == headers
    assert response.headers["content-type"] == "application/json"
    (turn,) = served.records.ended(client.api_key, 1)
    assert (turn.status, turn.error_type, turn.http_status) == ("error", kind, status)


def test_a_refused_connection(serve: Serve, connect: Connect) -> None:
    served = serve(OPENAI_BASE_URL=f"http://127.0.0.1:{free_port()}/v1")
    client = connect(served)
    for stream in (False, True):
        response = client.ask("Hi", stream=stream)
        assert (response.status_code, response.json()["error"]["type"]) == (502, "api_error")


def test_a_moment_to_retry_after_becomes_seconds(client: Client, served: Served) -> None:
    moment = formatdate(time.time() + 30, usegmt=True)
    served.chat(chat.error(429, "Slow down", {"retry-after": moment}))
    assert 25 <= int(client.ask("Hi").headers["retry-after"]) <= 31


CUTS: dict[str, tuple[tuple[Any, ...], str]] = {
    "closed": ((), "api_error"),
    "reset": ((Abort(),), "api_error"),
    "an error in the stream": ((chat.sse({"error": {"message": "x", "code": 529}}),), "overloaded_error"),
    "garbage": ((b"data: {not json\n\n",), "api_error"),
}


@pytest.mark.parametrize("cut", CUTS)
def test_after_the_first_byte_it_is_an_error_event(client: Client, served: Served, cut: str) -> None:
    steps, kind = CUTS[cut]
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), *steps))
    events = client.events("Hi")
    assert folded(events) == [{"type": "text", "text": "Hel"}]
    assert names(events).count("error") == 1
    assert (events[-1].data["type"], events[-1].data["error"]["type"]) == ("error", kind)
    assert "message_stop" not in names(events)
    (turn,) = served.records.ended(client.api_key, 1)
    assert (turn.status, turn.error_type) == ("error", kind)


PACKED = {"content-type": "text/event-stream", "content-encoding": "gzip"}


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_in_gzip_is_read_though_nobody_asked_for_it(client: Client, served: Served, stream: bool) -> None:
    plain = b"".join([chat.chunk({"content": "Hello"}), *chat.ending("stop")])
    packed = gzip.compress(plain)
    served.chat(Answer((packed[:1], packed[1:30], packed[30:]), 200, PACKED))
    assert "Hello" in client.ask("Hi", stream=stream).text
    slow = gzip.compress(b'{"error":{"message":"slow"}}')
    served.chat(Answer((slow,), 429, {"content-type": "application/json", "content-encoding": "gzip"}))
    assert client.ask("Hi", stream=stream).json()["error"]["message"] == "slow"
    for broken in (b"\x1fnot gzip", gzip.compress(bytes(20_000_000)), packed[:30]):
        served.chat(Answer((broken,), 200, PACKED))
        assert client.ask("Hi", stream=stream).status_code == 502


def deflated(data: bytes, window: int) -> bytes:
    packing = zlib.compressobj(wbits=window)
    return packing.compress(data) + packing.flush()


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_is_packed_in_another_way_is_read_too(client: Client, served: Served, stream: bool) -> None:
    pieces = [chat.chunk({"content": "Hello"}), *chat.ending("stop")]
    plain = b"".join(pieces)
    members = b"".join(map(gzip.compress, pieces))
    deflate = {"content-type": "text/event-stream", "content-encoding": "deflate"}
    for data in (members, members + bytes(8), deflated(plain, 15), deflated(plain, -15), plain):
        for reads in ((data,), (data[:45], data[45:])):
            served.chat(Answer(reads, 200, deflate))
            assert "Hello" in client.ask("Hi", stream=stream).text
    for broken in (deflated(plain, -15)[:40], deflated(bytes(20_000_000), 15), gzip.compress(bytes(9_000_000)) * 2):
        served.chat(Answer((broken,), 200, deflate))
        assert client.ask("Hi", stream=stream).status_code == 502


@pytest.mark.parametrize("stream", [False, True])
def test_after_a_finish_reason_it_does_not_matter_how_the_connection_ends(
    serve: Serve, connect: Connect, stream: bool
) -> None:
    served = serve(BRIDGE_UPSTREAM_IDLE_SECONDS="0.3")
    client = connect(served)
    for end in (Abort(), Silence()):
        call = chat.call_chunks(("call_1", "get_weather", {"city": "Oslo"}))
        served.chat(sse_answer(*call, chat.chunk({}, "tool_calls"), end))
        if stream:
            events = client.events("Hi", tools=[TOOL])
            found = folded(events), events[-2].data["delta"]["stop_reason"]
        else:
            answer = client.ask("Hi", tools=[TOOL]).json()
            found = answer["content"], answer["stop_reason"]
        assert (found[0][0]["input"], found[1]) == ({"city": "Oslo"}, "tool_use")


def test_a_stream_that_is_left_open_after_its_finish_reason_is_not_waited_for(client: Client, served: Served) -> None:
    served.chat(sse_answer(chat.chunk({"content": "Hello"}), chat.chunk({}, "stop"), Silence()))
    began = time.monotonic()
    events = client.events("Hi")
    assert (folded(events), names(events)[-1]) == ([{"type": "text", "text": "Hello"}], "message_stop")
    assert time.monotonic() - began < 60
    assert served.upstream.requests[-1].abandoned.wait(5)


@pytest.mark.parametrize("cut", CUTS)
def test_a_whole_answer_is_never_half_an_answer(client: Client, served: Served, cut: str) -> None:
    steps, kind = CUTS[cut]
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), *steps))
    response = client.ask("Hi")
    assert (response.status_code >= 400, response.json()["error"]["type"]) == (True, kind)


def test_a_whole_answer_that_went_wrong_at_its_end_is_asked_for_again(serve: Serve, connect: Connect) -> None:
    """Its client has seen nothing of it, whatever came before."""
    served = serve(BRIDGE_UPSTREAM_RETRIES="1")
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "Oslo"}}
    said = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    odd = json_answer({"choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]})
    served.chat(odd, chat.text("Sunny."))
    answer = connect(served).ask("Hi", tools=[TOOL]).json()
    assert answer["content"] == [{"type": "text", "text": "Sunny."}]


CALL = chat.call_chunks(("call_1", "get_weather", {"city": "Oslo"}))
LATER = chat.call_chunk(1, '{"city"', "call_2", "get_weather")


@pytest.mark.parametrize("cut", CUTS)
def test_a_whole_answer_that_broke_off_is_asked_for_again_with_nothing_of_it_left(
    serve: Serve, connect: Connect, cut: str
) -> None:
    served = serve(BRIDGE_UPSTREAM_RETRIES="1")
    client = connect(served)
    steps, _ = CUTS[cut]
    began = (chat.chunk({"reasoning_content": "Hm."}), Pause(0.05), chat.chunk({"content": "Hel"}), Pause(0.05))
    served.chat(sse_answer(*began, *steps), chat.streamed_text("Hello"))
    assert client.ask("Hi").json()["content"] == [{"type": "text", "text": "Hello"}]
    served.chat(
        sse_answer(*CALL, LATER, Pause(0.05), *steps), chat.streamed_calls(("call_1", "get_weather", {"city": "Rome"}))
    )
    answer = client.ask("Hi", tools=[TOOL])
    (call,) = answer.json()["content"]
    assert (call["name"], call["input"]) == ("get_weather", {"city": "Rome"})
    (mapping,) = client.mappings(answer.headers["x-conversation-id"])
    assert (mapping["tool_use_id"], mapping["status"]) == (call["id"], "pending")
    assert len(served.upstream.requests) == 4
    statuses = [entry.status for entry in served.records.usage(client.api_key)]
    assert statuses == ["error", "complete"] * 2


def test_calls_of_an_answer_that_was_never_shown_wait_for_no_result(client: Client, served: Served) -> None:
    served.chat(sse_answer(*CALL, LATER, Pause(0.05)))
    answer = client.ask("Hi", tools=[TOOL])
    assert answer.status_code == 502
    served.records.ended(client.api_key, 1)
    assert client.mappings(answer.headers["x-conversation-id"]) == []


def test_a_call_that_was_cut_off_is_not_shown_as_complete(client: Client, served: Served) -> None:
    chunks = chat.call_chunks(("call_1", "get_weather", {"city": "Oslo"}))
    served.chat(sse_answer(*chunks[:2]), sse_answer(chat.chunk({"content": "I look."}), *chunks[:2]))
    assert client.ask("Hi", tools=[TOOL], stream=True).status_code == 502, "nothing was shown"
    events = client.events("Hi", tools=[TOOL])
    assert names(events)[-1] == "error"
    assert folded(events) == [{"type": "text", "text": "I look."}]


def test_a_call_that_was_shown_and_cut_off_is_not_shown_as_complete(client: Client, served: Served) -> None:
    head, half, _ = chat.call_chunks(("call_1", "get_weather", {"city": "Oslo"}))
    served.chat(sse_answer(head, half, Pause(1)))
    events = client.events("Hi", tools=[TOOL])
    assert names(events) == ["message_start", "content_block_start", "error"]


def test_a_silent_upstream_is_given_up_after_the_deadline(serve: Serve, connect: Connect) -> None:
    served = serve(BRIDGE_UPSTREAM_IDLE_SECONDS="0.3")
    client = connect(served)
    served.chat(Raw((Silence(),)), Raw((Silence(),)), sse_answer(chat.chunk({"content": "Hel"}), Silence()))
    for stream in (False, True):
        response = client.ask("Hi", stream=stream)
        assert (response.status_code, response.json()["error"]["type"]) == (504, "timeout_error")
    events = client.events("Hi")
    assert events[-1].data["error"]["type"] == "timeout_error"
    assert served.upstream.requests[-1].abandoned.wait(5)


def test_transient_faults_are_tried_again_before_anything_was_shown(serve: Serve, connect: Connect) -> None:
    served = serve(BRIDGE_UPSTREAM_RETRIES="2")
    client = connect(served)
    hasty = {"retry-after": "0"}
    served.chat(chat.error(429, "x", hasty), chat.error(503, "x", hasty), chat.streamed_text("finally"))
    assert folded(client.events("Hi")) == [{"type": "text", "text": "finally"}]
    assert len(served.upstream.requests) == 3
    assert [entry.status for entry in served.records.usage(client.api_key)] == ["error", "error", "complete"]
    (turn,) = served.records.turns(client.api_key)
    assert (turn.status, b"429" in turn.attempts or b'"x"' in turn.attempts) == ("complete", True)

    served.chat(*[chat.error(429, "x", hasty)] * 3)
    assert client.ask("Hi again").status_code == 429
    served.chat(chat.error(400, "not transient"))
    assert client.ask("Hi again").status_code == 400
    served.chat(chat.error(429, "x", hasty, type="insufficient_quota"))
    assert client.ask("Hi again").status_code == 429
    assert len(served.upstream.requests) == 8

    served.chat(sse_answer(chat.chunk({"content": "Hel"})))
    assert names(client.events("Hi"))[-1] == "error"
    assert len(served.upstream.requests) == 9, "nothing is tried again once it was shown"


@pytest.mark.parametrize(
    ("model", "named"),
    [("gemini/gemini-3", "GEMINI_API_KEY"), ("anthropic/claude", "ANTHROPIC_UPSTREAM_URL"), ("nonsense-9", "nonsense-9"), ("openai/", "openai")],
)  # fmt: skip
def test_a_model_without_a_route_names_what_to_set(client: Client, model: str, named: str) -> None:
    response = client.ask("Hi", model=model)
    assert (response.status_code, response.json()["error"]["type"]) == (404, "not_found_error")
    assert named in response.json()["error"]["message"]
    assert client.conversations() == []


@pytest.mark.parametrize("model", ["minimax/m", "minimax-m3/m", "MiniMax-M3"])
def test_an_upstream_without_an_address_names_the_variable_that_there_is(
    serve: Serve, connect: Connect, model: str
) -> None:
    response = connect(serve(MINIMAX_API_KEY="k")).ask("Hi", model=model)
    assert response.status_code == 404
    assert response.json()["error"]["message"].endswith("set MINIMAX_BASE_URL")
