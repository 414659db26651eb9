"""What the client reads: the API's grammar, byte for byte, and as the official SDK takes it."""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from translation.accumulator import Accumulator
from translation.client.render import MESSAGES, PING, error_body, error_event, error_headers, message_body, sse
from translation.errors import (
    BridgeError,
    InvalidRequest,
    OverBudget,
    StoreUnavailable,
    ThreadNotFound,
    TruncatedStream,
    UpstreamKeyRefused,
    UpstreamOverloaded,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from translation.events import (
    BlockDelta,
    BlockStart,
    Event,
    Finished,
    MessageDelta,
    MessageStop,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolStarted,
    WholeBlock,
    WireEvent,
)
from translation.sse import SSEDecoder
from translation.values import Usage
from translation.writer import BlockWriter

USAGE = Usage(input_tokens=10, output_tokens=20, cache_read=30, cache_write=40)
COUNTS = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 40,
    "cache_read_input_tokens": 30,
    "output_tokens": 20,
}


def answer(events: list[Event], finished: Finished, usage: Usage = USAGE) -> list[WireEvent]:
    writer = BlockWriter(signature="sig")
    start = writer.start("msg_1", "claude-x", Usage(input_tokens=9, output_tokens=1))
    return [start, *writer.feed(events), *writer.finish(finished, usage)]


def payloads(text: bytes) -> list[tuple[str, Any]]:
    return [(name, json.loads(data)) for name, data in SSEDecoder().feed(text)]


TOOLS: list[Event] = [
    ThinkingDelta("hm"),
    TextDelta("a\0“b”\u2028"),
    ToolStarted(0, "read", id="toolu_0"),
    ToolEnded(0, '{"path":"x"}'),
    ToolStarted(1, "list", id="toolu_1"),
    ToolEnded(1, "{}"),
]


def test_stream_is_the_grammar_of_the_api() -> None:
    usage = Usage(10, 20, 30, 40, thinking_tokens=5, searches=2)
    assert payloads(sse(answer(TOOLS[:4], Finished("tool_use"), usage))) == [
        (
            "message_start",
            {
                "type": "message_start",
                "message": {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-x",
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": {
                        "input_tokens": 9,
                        "cache_creation_input_tokens": 0,
                        "cache_read_input_tokens": 0,
                        "output_tokens": 1,
                    },
                },
            },
        ),
        _start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        _delta(0, {"type": "thinking_delta", "thinking": "hm"}),
        _delta(0, {"type": "signature_delta", "signature": "sig"}),
        _stop(0),
        _start(1, {"type": "text", "text": ""}),
        _delta(1, {"type": "text_delta", "text": "a\0“b”\u2028"}),
        _stop(1),
        _start(2, {"type": "tool_use", "id": "toolu_0", "name": "read", "input": {}}),
        _delta(2, {"type": "input_json_delta", "partial_json": '{"path":"x"}'}),
        _stop(2),
        (
            "message_delta",
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use", "stop_sequence": None},
                "usage": COUNTS
                | {"output_tokens_details": {"thinking_tokens": 5}}
                | {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0}},
            },
        ),
        ("message_stop", {"type": "message_stop"}),
    ]


def _start(index: int, block: dict[str, Any]) -> tuple[str, Any]:
    return "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, Any]) -> tuple[str, Any]:
    return "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(index: int) -> tuple[str, Any]:
    return "content_block_stop", {"type": "content_block_stop", "index": index}


def test_text_delta_byte_for_byte() -> None:
    assert sse([BlockDelta(3, "text_delta", 'a"\n'), MessageStop()]) == (
        b"event: content_block_delta\n"
        b'data: {"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a\\"\\n"}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )


def test_stop_sequence_and_refusal_say_what_stopped() -> None:
    sequence = payloads(sse([MessageDelta("stop_sequence", USAGE, "END")]))[0][1]["delta"]
    assert sequence == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    refusal = payloads(sse([MessageDelta("refusal", USAGE, "", "not this")]))[0][1]["delta"]
    assert refusal == {
        "stop_reason": "refusal",
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "category": None, "explanation": "not this"},
    }
    unexplained = payloads(sse([MessageDelta("refusal", USAGE)]))[0][1]["delta"]
    assert unexplained["stop_details"]["explanation"] is None


def folded(events: list[WireEvent]) -> bytes:
    accumulator = Accumulator()
    accumulator.feed(events)
    return message_body(accumulator)


def test_whole_message_is_the_same_answer() -> None:
    assert json.loads(folded(answer(TOOLS, Finished("tool_use")))) == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "a\0“b”\u2028"},
            {"type": "tool_use", "id": "toolu_0", "name": "read", "input": {"path": "x"}},
            {"type": "tool_use", "id": "toolu_1", "name": "list", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": COUNTS,
    }


def test_whole_refusal_has_its_details() -> None:
    body = json.loads(folded(answer([], Finished("refusal", explanation="no"))))
    assert body["stop_details"] == {"type": "refusal", "category": None, "explanation": "no"}


def test_what_an_upstream_wrote_over_several_lines_is_one_line() -> None:
    wire: list[WireEvent] = [BlockStart(0, b'{"type":\n"x"}'), BlockDelta(0, "citations_delta", '{"a":\r\n1}')]
    assert [data for _, data in payloads(sse(wire))] == [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "x"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"a": 1}}},
    ]


broken = st.text(st.sampled_from('aé\0"\ud83d\ude00\udc00'), max_size=8)


@given(broken, broken, broken)
def test_broken_unicode_never_stops_an_answer(text: str, thought: str, arguments: str) -> None:
    call = json.dumps({"a": arguments}, ensure_ascii=False)
    events: list[Event] = [ThinkingDelta(thought), TextDelta(text), ToolStarted(0, "é", id="t"), ToolEnded(0, call)]
    wire = answer(events, Finished("refusal", explanation=text))
    assert payloads(sse(wire))[-1][0] == "message_stop"
    assert json.loads(folded(wire))["content"][-1]["type"] == "tool_use"
    error_event(InvalidRequest(text), "req_1").decode()


# ---------------------------------------------------------------- errors

HEADERS: list[tuple[BridgeError, tuple[tuple[str, str], ...]]] = [
    (InvalidRequest("x"), ()),
    (UpstreamRateLimited("x", retry_after=1.2), (("retry-after", "2"),)),
    (UpstreamRateLimited("x", retry_after=-3), (("retry-after", "0"),)),
    (StoreUnavailable(), (("retry-after", "2"),)),
    (UpstreamKeyRefused("x"), (("x-should-retry", "false"),)),
]


@pytest.mark.parametrize(("error", "headers"), HEADERS)
def test_error_headers(error: BridgeError, headers: tuple[tuple[str, str], ...]) -> None:
    assert error_headers(error) == headers


def test_error_may_ask_to_be_retried() -> None:
    error = BridgeError("x")
    error.should_retry = True
    assert error_headers(error) == (("x-should-retry", "true"),)


def test_error_body_has_the_code_where_there_is_one() -> None:
    assert json.loads(error_body(InvalidRequest("bad"), "req_1")) == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "bad"},
        "request_id": "req_1",
    }
    lost = json.loads(error_body(ThreadNotFound("gone", code="thread_not_found"), "req_1"))
    assert lost["error"]["details"] == {"error_code": "thread_not_found"}


# ---------------------------------------------------------------- the official SDK reads it


def client(respond: Callable[[httpx2.Request], httpx2.Response]) -> anthropic.Anthropic:
    wire = httpx2.Client(transport=httpx2.MockTransport(respond))
    return anthropic.Anthropic(api_key="k", base_url="http://bridge", max_retries=0, http_client=wire)


def streamed(text: bytes) -> anthropic.Anthropic:
    return client(lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=text))


ASK: Any = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
SEARCHED = WholeBlock(b'{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}')


@pytest.mark.parametrize("events", [TOOLS, [], [TextDelta("x"), SEARCHED, TextDelta("y")]])
def test_sdk_reads_the_stream_and_the_whole_message_alike(events: list[Event]) -> None:
    wire = answer(events, Finished("stop"))
    with streamed(PING + sse(wire[:1]) + PING + b": comment\n\n" + sse(wire[1:])).messages.stream(**ASK) as stream:
        live = stream.get_final_message()
    whole = client(lambda _: httpx2.Response(200, json=json.loads(folded(wire)))).messages.create(**ASK)
    assert live.to_dict(exclude_none=True) == whole.to_dict(exclude_none=True)
    assert live.stop_reason == ("tool_use" if events is TOOLS else "end_turn")
    assert live.usage.input_tokens == 10
    assert live.usage.cache_read_input_tokens == 30


def test_sdk_raises_an_error_in_mid_stream() -> None:
    wire = answer([TextDelta("half")], Finished("stop"))
    text = sse(wire[:3]) + error_event(TruncatedStream("the upstream closed early"), "req_9")
    with pytest.raises(anthropic.APIStatusError, match="closed early"), streamed(text).messages.stream(**ASK) as stream:
        stream.get_final_message()


CLASSES: list[tuple[BridgeError, type[anthropic.APIStatusError]]] = [
    (InvalidRequest("bad"), anthropic.BadRequestError),
    (OverBudget("bad"), anthropic.APIStatusError),
    (ThreadNotFound("bad"), anthropic.NotFoundError),
    (UpstreamRateLimited("bad"), anthropic.RateLimitError),
    (UpstreamKeyRefused("bad"), anthropic.InternalServerError),
    (UpstreamTimeout("bad"), anthropic.APIStatusError),
    (UpstreamOverloaded("bad"), anthropic.APIStatusError),
]


@pytest.mark.parametrize(("error", "raised"), CLASSES)
def test_sdk_raises_the_class_of_the_error(error: BridgeError, raised: type[anthropic.APIStatusError]) -> None:
    body = error_body(error, "req_7")
    with pytest.raises(raised) as caught:
        client(lambda _: httpx2.Response(error.status, content=body)).messages.create(**ASK)
    assert caught.value.status_code == error.status
    assert "bad" in caught.value.message


def test_the_renderer_says_what_its_parts_say() -> None:
    wire = answer([TextDelta("Hello")], Finished("stop"))
    accumulator = Accumulator()
    accumulator.feed(wire)
    assert MESSAGES.events(wire) == sse(wire)
    assert MESSAGES.whole(accumulator) == message_body(accumulator)
    error = StoreUnavailable()
    assert MESSAGES.error(error, "req_1") == error_event(error, "req_1")
    told = MESSAGES.refusal(error, "req_1")
    assert (told.status, told.body) == (529, error_body(error, "req_1"))
    assert told.headers == (("request-id", "req_1"), *error_headers(error))
