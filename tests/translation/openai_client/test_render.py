"""Answers as chat completions."""

from typing import Any

import msgspec
import pytest

from translation import errors
from translation.accumulator import Accumulator
from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    MessageDelta,
    MessageStart,
    MessageStop,
    Relayed,
    WireEvent,
    Written,
)
from translation.openai_client.render import DONE, ChatRenderer
from translation.values import Usage

START = MessageStart("msg_1", "gpt-5", Usage(1, 1))
USED = Usage(input_tokens=10, output_tokens=5, cache_read=3, cache_write=2, thinking_tokens=4)
COUNTED = {
    "prompt_tokens": 15,
    "completion_tokens": 5,
    "total_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


def text(index: int, words: str) -> list[Written]:
    begun = BlockStart(index, b'{"type":"text","text":""}')
    return [begun, BlockDelta(index, "text_delta", words), BlockStop(index)]


def thought(index: int, words: str) -> list[WireEvent]:
    deltas = [BlockDelta(index, "thinking_delta", words), BlockDelta(index, "signature_delta", "s")]
    return [BlockStart(index, b'{"type":"thinking","thinking":"","signature":""}'), *deltas, BlockStop(index)]


def call(index: int, id_: str, *fragments: str) -> list[WireEvent]:
    begun = msgspec.json.encode({"type": "tool_use", "id": id_, "name": "read", "input": {}})
    deltas = [BlockDelta(index, "input_json_delta", fragment) for fragment in fragments]
    return [BlockStart(index, begun), *deltas, BlockStop(index)]


def ending(reason: str, explanation: str = "") -> list[WireEvent]:
    return [MessageDelta(reason, USED, "", explanation), MessageStop()]


def chunks(*events: WireEvent, include_usage: bool = False) -> list[Any]:
    out = ChatRenderer(7, include_usage=include_usage).events([START, *events])
    assert out.endswith(DONE)
    return [msgspec.json.decode(frame.removeprefix(b"data: ")) for frame in out.removesuffix(DONE).split(b"\n\n")[:-1]]


def deltas(*events: WireEvent) -> list[Any]:
    return [chunk["choices"][0]["delta"] for chunk in chunks(*events, *ending("end_turn"))]


def whole(*events: WireEvent) -> Any:
    accumulator = Accumulator()
    accumulator.feed([START, *events])
    return msgspec.json.decode(ChatRenderer(7).whole(accumulator))


def test_text_comes_in_chunks_that_share_one_identity() -> None:
    first, second, last = chunks(*text(0, "Hello"), *ending("end_turn"))
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    head = {"id": "chatcmpl-1", "created": 7, "model": "gpt-5", "object": "chat.completion.chunk"}
    assert first == head | {"choices": [choice]}
    assert second["choices"][0]["delta"] == {"content": "Hello"}
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")


def test_reasoning_has_its_own_field_and_signatures_none() -> None:
    assert deltas(*thought(0, "Hm."), *text(1, "Yes.")) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Hm."},
        {"content": "Yes."},
        {},
    ]


def test_calls_are_numbered_and_have_arguments_even_when_they_have_none() -> None:
    _, *calls, _ = deltas(*text(0, ""), *call(1, "toolu_1", '{"a"', ":1}"), *call(2, "toolu_2", ""))[1:]
    function = {"name": "read", "arguments": ""}
    assert [made["tool_calls"][0] for made in calls] == [
        {"index": 0, "id": "toolu_1", "type": "function", "function": function},
        {"index": 0, "function": {"arguments": '{"a"'}},
        {"index": 0, "function": {"arguments": ":1}"}},
        {"index": 1, "id": "toolu_2", "type": "function", "function": function},
        {"index": 1, "function": {"arguments": "{}"}},
    ]


def test_text_that_a_block_begins_with_is_not_lost_and_other_blocks_are_not_shown() -> None:
    begun: list[WireEvent] = [BlockStart(0, b'{"type":"text","text":"Hi"}'), BlockStop(0)]
    search: list[WireEvent] = [BlockStart(1, b'{"type":"web_search_tool_result","content":[]}'), BlockStop(1)]
    cited = BlockDelta(0, "citations_delta", "{}")
    assert deltas(*begun, cited, *search) == [{"role": "assistant", "content": ""}, {"content": "Hi"}, {}]


def test_what_is_relayed_is_rendered_by_what_it_says() -> None:
    relayed = [Relayed(b"raw", event) for event in text(0, "Hello")]
    assert deltas(Relayed(b"raw"), *relayed)[1] == {"content": "Hello"}


def test_usage_is_a_last_chunk_of_its_own_when_asked_for() -> None:
    *others, last = chunks(*text(0, "Hi"), *ending("end_turn"), include_usage=True)
    assert (last["choices"], last["usage"]) == ([], COUNTED)
    assert all(chunk["usage"] is None for chunk in others)


def test_an_answer_finishes_once_however_often_its_upstream_says_so() -> None:
    first = MessageDelta("tool_use", Usage())
    *others, end, last = chunks(first, *ending("tool_use"), include_usage=True)
    assert [choice["finish_reason"] for chunk in others for choice in chunk["choices"]] == [None]
    assert (end["choices"][0]["finish_reason"], last["usage"]) == ("tool_calls", COUNTED)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("model_context_window_exceeded", "length"),
        ("something_new", "stop"),
    ],
)
def test_stop_reasons_are_the_clients_own(reason: str, finish: str) -> None:
    assert chunks(*ending(reason))[-1]["choices"][0]["finish_reason"] == finish
    assert whole(*ending(reason))["choices"][0]["finish_reason"] == finish


def test_a_refusal_says_why() -> None:
    assert chunks(*ending("refusal", "Unsafe."))[-1]["choices"][0]["delta"] == {"refusal": "Unsafe."}
    assert whole(*ending("refusal", "Unsafe."))["choices"][0]["message"]["refusal"] == "Unsafe."


def test_a_whole_answer() -> None:
    events = [*thought(0, "Hm."), *text(1, "One. "), *text(2, "Two."), *call(3, "toolu_1", '{"a":1}')]
    calls = [{"id": "toolu_1", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}}]
    message = {"role": "assistant", "content": "One. Two.", "refusal": None, "reasoning_content": "Hm."}
    choice = {"index": 0, "message": message | {"tool_calls": calls}, "logprobs": None, "finish_reason": "tool_calls"}
    head = {"id": "chatcmpl-1", "created": 7, "model": "gpt-5", "object": "chat.completion"}
    assert whole(*events, *ending("tool_use")) == head | {"choices": [choice], "usage": COUNTED}


def test_content_is_null_beside_calls_only() -> None:
    assert whole(*call(0, "toolu_1"), *ending("tool_use"))["choices"][0]["message"]["content"] is None
    assert whole(*ending("end_turn"))["choices"][0]["message"]["content"] == ""


def test_an_error_ends_a_stream_without_done() -> None:
    out = ChatRenderer(7).error(errors.UpstreamOverloaded("busy"), "req_1")
    assert out.startswith(b'data: {"error":{"message":"busy"')
    assert DONE not in out


def test_a_refused_request_has_the_clients_status_and_headers() -> None:
    told = ChatRenderer(0).refusal(errors.StoreUnavailable(), "req_1")
    assert told.status == 503
    assert dict(told.headers) == {"request-id": "req_1", "x-request-id": "req_1", "retry-after": "2"}


def test_a_budget_is_not_worth_a_retry() -> None:
    assert dict(ChatRenderer(0).refusal(errors.OverBudget("spent"), "req_1").headers)["x-should-retry"] == "false"


def test_arguments_of_a_tool_that_was_run_for_the_client_are_not_shown() -> None:
    renderer = ChatRenderer(1)
    renderer.events([MessageStart("msg_1", "m", Usage())])
    block = b'{"type":"mcp_tool_use","id":"a","name":"n","server_name":"s","input":{}}'
    assert renderer.events([BlockStart(0, block), BlockDelta(0, "input_json_delta", "{}"), BlockStop(0)]) == b""
