"""Answers whose values are of another kind than they should be: the nothing of PHP and Go, numbers for text."""

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Raw, Struct

from tests.translation.answers import answer, calls
from tests.translation.frames import sse
from translation.fitting import Spare, fitted
from translation.values import Usage

Json = dict[str, Any]
SAID = [{"type": "text", "text": "hello"}]


class Counts(Spare, frozen=True):
    tokens: int | None = None
    price: float | None = None
    whole: Annotated[int, Meta(ge=0)] | None = None
    inner: "Counts | None" = None


class Thing(Struct, rename="camel"):
    name: str = ""
    is_new: bool = False
    count: int = 0
    things: "list[Thing] | None" = None
    notes: tuple[Raw, ...] | None = None
    content: "str | list[Thing] | None" = None
    usage: Counts | None = None
    table: dict[str, Raw] | None = None
    raw: Raw = Raw(b"")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b'{"name":6}', b'{"name":"6"}'),
        (b'{"name":0.0050}', b'{"name":"0.0050"}'),
        (b'{"name":false,"count":null,"things":{},"notes":"","content":[]}', b'{"content":[]}'),
        (b'{"isNew":false,"count":"7"}', b'{"isNew":false,"count":7}'),
        (b'{"count":7.9}', b'{"count":7}'),
        (b'{"count":1e400}', b'{"count":1e400}'),
        (b'{"count":-3,"other":[]}', b'{"count":-3,"other":[]}'),
        (b'{"things":{"name":5}}', b'{"things":[{"name":"5"}]}'),
        (b'{"things":[null,{},{"name":"a"}]}', b'{"things":[{},{"name":"a"}]}'),
        (b'{"content":{"name":"a"}}', b'{"content":[{"name":"a"}]}'),
        (b'{"notes":[null,{"a":[]}]}', b'{"notes":[{"a":[]}]}'),
        (b'{"usage":[1]}', b"{}"),
        (b'{"usage":{"tokens":"many","price":"0.5","inner":{"tokens":true},"other":1}}',
         b'{"usage":{"price":0,"inner":{},"other":1}}'),
        (b'{"raw":{"a":[]},"table":{"a":[]}}', b'{"raw":{"a":[]},"table":{"a":[]}}'),
        (b'{"table":[]}', b"{}"),
        (b'{"usage":{"whole":-1}}', b'{"usage":{}}'),
        (b'{"usage":{"whole":2.5}}', b'{"usage":{"whole":2}}'),
        (b'{"name":{"a":1},"isNew":"yes"}', b'{"name":{"a":1},"isNew":"yes"}'),
        (b"null", b"null"),
        (b"[]", b"[]"),
    ],
)  # fmt: skip
def test_what_is_clear_is_put_right_and_the_rest_stays(given: bytes, expected: bytes) -> None:
    assert fitted(given, Thing) == expected


def chunk(delta: object, finish: str | None = None, **more: object) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


STOP = chunk({}, "stop")
COUNTED: Json = {"prompt_tokens": 100, "completion_tokens": 10}


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (chunk({"content": "hello"}, usage=[]), SAID),
        (chunk({"content": "hello"}, usage="none"), SAID),
        (chunk({"content": "hello", "tool_calls": {}, "reasoning": False, "function_call": ""}), SAID),
        (chunk({"content": "hello", "tool_calls": [None]}), SAID),
        (chunk({"content": {"type": "text", "text": "hello"}}), SAID),
        ({"choices": {"index": 0, "delta": {"content": "hello"}}}, SAID),
        ({"choices": [None, {"index": "0", "delta": {"content": "hello"}}]}, SAID),
        (chunk({"content": 0.50}), [{"type": "text", "text": "0.5"}]),
    ],
)
def test_a_chat_server_may_say_nothing_in_any_way(odd: Json, expected: list[Json]) -> None:
    empty = chunk([])
    assert answer("openai", sse(empty, odd, STOP, b"[DONE]"))[:2] == (expected, "end_turn")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_may_come_in_parts(field: str) -> None:
    odd = chunk({field: [{"type": "text", "text": "hm"}, {"type": "other"}]})
    content, _, _ = answer("openrouter", sse(odd, chunk({"content": "hello"}), STOP))
    assert [block.get("thinking") or block["text"] for block in content] == ["hm", "hello"]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 100.0, "completion_tokens": 10.7}, Usage(100, 10)),
        ({**COUNTED, "prompt_tokens_details": [], "completion_tokens_details": "x"}, Usage(100, 10)),
        ({**COUNTED, "prompt_tokens_details": {"cached_tokens": 40.5}}, Usage(60, 10, 40)),
        ([1], None),
    ],
)
def test_no_count_of_a_chat_server_costs_an_answer(usage: object, expected: Usage | None) -> None:
    told = sse(chunk({"content": "hello"}, usage=usage), STOP)
    assert answer("openai", told) == (SAID, "end_turn", expected)


MESSAGE = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "hello"}]}


def response(**more: object) -> Json:
    return {"id": "r", "status": "completed", "output": [MESSAGE], **more}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 100.5, "output_tokens": "10"}, Usage(100, 10)),
        ({"input_tokens": -1, "output_tokens": -1}, None),
        ({"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": -50}}, Usage(100, 5)),
        ({"input_tokens": 100, "output_tokens": 5, "input_tokens_details": [], "other": 1}, Usage(100, 5)),
        ("none", None),
    ],
)
def test_no_count_of_a_responses_server_costs_an_answer(usage: object, expected: Usage | None) -> None:
    told = response(usage=usage)
    for body in (sse({"type": "response.completed", "response": told}), msgspec.json.encode(told)):
        assert answer("openai-responses", body) == (SAID, "end_turn", expected)


def test_a_responses_server_may_say_nothing_in_any_way() -> None:
    call = {"type": "function_call", "call_id": 5, "name": "Read", "arguments": [], "summary": ""}
    text = {"type": "response.output_text.delta", "output_index": "0", "item_id": "m", "delta": 6}
    nothings: list[object] = [{}, "", False, []]
    for nothing in nothings:
        over = {"type": "response.completed", "response": response(output=[call], error=nothing, usage=[])}
        content, end, _ = answer("openai-responses", sse(text, over))
        assert (content[0]["text"], calls(content), end) == ("6", [("Read", {})], "tool_use")


def candidate(*parts: object, **more: object) -> Json:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}]}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"promptTokenCount": 100, "candidatesTokenCount": 10.5}, Usage(100, 10)),
        ({"promptTokenCount": 100, "candidatesTokenCount": 10, "cachedContentTokenCount": -5}, Usage(100, 10)),
        ({"promptTokenCount": 9, "candidatesTokenCount": 1, "thoughtsTokenCount": -5}, Usage(9, 1)),
        ([], None),
    ],
)
def test_no_count_of_a_gemini_server_costs_an_answer(usage: object, expected: Usage | None) -> None:
    told = candidate({"text": "hello"}, None, finishReason="STOP", groundingMetadata={"webSearchQueries": "q"})
    for body in (
        sse({**told, "usageMetadata": usage, "error": {}}),
        msgspec.json.encode({**told, "usageMetadata": usage}),
    ):
        assert answer("gemini", body) == (SAID, "end_turn", expected)


def test_a_whole_answer_of_gemini_that_cannot_be_read_was_not_cut_off() -> None:
    _, failed, _ = answer("gemini", msgspec.json.encode(candidate("text")))
    assert failed.startswith("the upstream sent an answer that is not Gemini's: Expected `object`")


@pytest.mark.parametrize("usage", [{"output_tokens": 10.5, "server_tool_use": []}, {"output_tokens": "10", "x": 1}])
def test_no_count_of_a_server_like_anthropic_costs_an_answer(usage: Json) -> None:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_details": "x"}
    streamed = sse(
        {"type": "message_start", "message": {**message, "content": [], "usage": {"input_tokens": 100.5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_details": []}, "usage": usage},
        {"type": "message_stop"},
    )
    whole: Json = {**message, "content": SAID, "stop_reason": "end_turn", "usage": {**usage, "input_tokens": 100.5}}
    for body in (streamed, msgspec.json.encode(whole)):
        assert answer("anthropic", body) == (SAID, "end_turn", Usage(100, 10))


def test_less_than_nothing_is_no_count_of_a_server_like_anthropic() -> None:
    usage = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": -1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "usage": usage}
    streamed = sse(
        {"type": "message_start", "message": {**message, "content": []}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    )
    whole = {**message, "content": [], "stop_reason": "end_turn"}
    for body in (streamed, msgspec.json.encode(whole)):
        assert answer("anthropic", body) == ([], "end_turn", Usage(7, 5))


@pytest.mark.parametrize("nothing", [None, False, "", [], {}])
def test_no_error_is_none_however_it_is_written(nothing: object) -> None:
    none = {"error": nothing}
    assert answer("openai", sse(chunk({"content": "hello"}) | none, STOP | none))[:2] == (SAID, "end_turn")
    begun: Json = {"type": "response.in_progress", **none}
    over: Json = {"type": "response.completed", "response": {"status": "completed", **none}}
    said: Json = {"type": "response.output_text.delta", "delta": "hello"}
    assert answer("openai-responses", sse(begun, said, over))[:2] == (SAID, "end_turn")
