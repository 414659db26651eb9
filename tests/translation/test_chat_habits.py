"""Habits of servers that speak Chat Completions: each a stream, or a whole answer, read to what a client gets."""

from typing import Any

import msgspec
import pytest

from tests.translation.answers import Json, answer, calls, chunk, decoder, piece
from tests.translation.frames import sse
from translation.errors import UpstreamGaveUp
from translation.events import Failed

COUNTS = {"prompt_tokens": 3, "completion_tokens": 1}
CALL = piece('{"path":"1"}', "Read", "c")
ONE = {"path": "1"}
HERMES = '<tool_call>\n{"name": "Read", "arguments": {"path": "1"}}\n</tool_call>'


def shown(*events: Json | bytes, provider: str = "vllm") -> tuple[list[Any], str]:
    """The words and the inputs of calls, and how it ended."""
    content, end, _ = answer(provider, sse(*events))
    return [block.get("thinking") or block.get("text") or block["input"] for block in content], end


@pytest.mark.parametrize("end", [[], [b"[DONE]"], [{"choices": [], "usage": COUNTS}]])
@pytest.mark.parametrize("before", [[], [chunk({"content": "a"})]])
def test_what_follows_a_reason_that_came_with_counts_is_heard(before: list[Json], end: list[Json]) -> None:
    finish = [*before, chunk(finish="stop", usage=COUNTS)]
    said = ["a"] if before else []
    assert shown(*finish, *end) == (said, "end_turn")
    assert shown(*finish, chunk({"content": "b"}), *end) == (["ab"] if before else ["b"], "end_turn")
    assert shown(*finish, CALL, *end) == ([*said, ONE], "tool_use")


def words(text: str, size: int, finish: str = "stop") -> list[Json | bytes]:
    pieces = [chunk({"content": text[n : n + size]}) for n in range(0, len(text), size)]
    return [*pieces, chunk(finish=finish), b"[DONE]"]


TOKENS = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>"]


@pytest.mark.parametrize("size", [1, 3, 4000])
@pytest.mark.parametrize("token", [*TOKENS, "<|im_end|>\n<|endoftext|>", "</s></s>\n"])
def test_a_token_that_ends_the_turn_is_no_text(token: str, size: int) -> None:
    for said in ("Hello.", "a < b", '{"a": [1]}', "<b>bold</b>", "好。", "1 <2"):
        assert shown(*words(said + token, size)) == ([said], "end_turn")
    content, end, _ = answer("vllm", sse(*words(HERMES + token, size)))
    assert (calls(content), len(content), end) == ([("Read", ONE)], 1, "tool_use")


SPOKEN = [
    "<|im_end|>",
    "It ends with <|im_end|>",
    "It ends with `<|im_end|>`",
    'It is "<|im_end|>"',
    "It is:\n<|im_end|>",
    "标记是<|im_end|>",
    "<|im_start|>user\nHi<|im_end|>",
    "Hi<|im_end|>\n<|im_start|>user",
    "One turn.<|im_end|> Another.<|im_end|>",
    "<s>old</s>",
    "<s>old</s> new</s>",
    "<start_of_turn>user\nHi<end_of_turn>",
    "Hi<|im_en",
    "Hi<",
    "Hi</span>",
    "Hi" + "</s>" * 1000,
    "no <|special|> word<|im_end|>",
]


@pytest.mark.parametrize("size", [1, 3, 4000])
@pytest.mark.parametrize("text", SPOKEN)
def test_who_speaks_of_such_tokens_is_heard(text: str, size: int) -> None:
    assert shown(*words(text, size)) == ([text], "end_turn")


def test_such_a_token_stays_where_it_is_no_end() -> None:
    assert shown(*words("Hi<|im_end|>", 4, "length")) == (["Hi<|im_end|>"], "max_tokens")
    assert shown(*words("Hi<|im_end|>", 4), provider="openai") == (["Hi<|im_end|>"], "end_turn")
    called = [*words("Hi<|im_end|>", 4)[:-2], CALL, chunk(finish="tool_calls"), b"[DONE]"]
    assert shown(*called) == (["Hi<|im_end|>", ONE], "tool_use")
    thought = [chunk({"content": "Hi</s>"}), chunk({"reasoning": "hm"}), chunk({"content": "Ho</s>"})]
    assert shown(*thought, chunk(finish="stop")) == (["Hi</s>", "hm", "Ho"], "end_turn")


ADDRESS, DATA = "https://example.com/a.png", "data:image/png;base64,AAAA"
PICTURES = [
    ({"type": "image_url", "image_url": {"url": DATA}}, "[image/png, 3 bytes: cannot be shown here]"),
    ({"type": "image_url", "image_url": {"url": ADDRESS}}, f"[image: {ADDRESS}]"),
    ({"type": "image_url", "image_url": ADDRESS}, f"[image: {ADDRESS}]"),
    ({"type": "image", "source": {"data": "AAAA"}}, "[image: cannot be shown here]"),
]


@pytest.mark.parametrize(("picture", "told"), PICTURES)
def test_an_image_among_the_parts_of_a_text_is_told_of(picture: Json, told: str) -> None:
    parts = [{"type": "text", "text": "a"}, picture, {"type": "text", "text": "b"}]
    body = {"choices": [{"index": 0, "message": {"content": parts}, "finish_reason": "stop"}]}
    for events in ([chunk({"content": parts}), chunk(finish="stop"), b"[DONE]"], [body]):
        assert shown(*events) == ([f"a\n{told}b"], "end_turn")
    assert shown(chunk({"content": [picture]}), chunk({"content": [picture]}), chunk(finish="stop"))[0] == [told]


def test_a_message_beside_an_empty_delta_is_heard() -> None:
    whole = {"content": "a", "tool_calls": CALL["choices"][0]["delta"]["tool_calls"]}
    last = {"choices": [{"index": 0, "delta": {}, "message": whole, "finish_reason": "tool_calls"}]}
    assert shown(last, b"[DONE]") == (["a", ONE], "tool_use")
    assert shown(chunk({"content": "a"}), last, b"[DONE]") == (["a", ONE], "tool_use")
    assert shown(chunk({"content": "a"}), CALL, last, b"[DONE]") == (["a", ONE], "tool_use")
    both = {"choices": [{"index": 0, "delta": {"content": "a"}, "message": {"content": "a"}}]}
    assert shown(both, chunk(finish="stop")) == (["a"], "end_turn")


def test_a_text_as_servers_complete_it_is_one() -> None:
    pieces = [{"choices": [{"index": 0, "text": said, "finish_reason": None}]} for said in ("a", "b", "")]
    end = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}
    assert shown(*pieces, end, b"[DONE]") == (["ab"], "end_turn")
    assert shown({"choices": [{"index": 0, "text": "a", "finish_reason": "length"}]}) == (["a"], "max_tokens")
    beside = {"choices": [{"index": 0, "text": "a", "delta": {"content": "a"}}]}
    assert shown(beside, chunk(finish="stop")) == (["a"], "end_turn")


@pytest.mark.parametrize("word", ["normal", "completed", "COMPLETED"])
def test_more_words_say_that_an_answer_is_complete(word: str) -> None:
    assert shown(chunk({"content": "a"}, word)) == (["a"], "end_turn")


@pytest.mark.parametrize("word", ["malformed_tool_use", "malformed_model_output"])
def test_more_words_say_that_the_upstream_gave_up(word: str) -> None:
    reading, _, _ = decoder("openai")
    (failed,) = reading.feed(sse(chunk(finish=word)))
    assert isinstance(failed, Failed) and isinstance(failed.error, UpstreamGaveUp)


def test_a_reason_that_is_the_word_none_is_none() -> None:
    assert shown(chunk({"content": "a"}, "None"), chunk({"content": "b"}, "length")) == (["ab"], "max_tokens")


def said_whole(text: str, provider: str = "vllm", **more: Any) -> tuple[list[Any], str]:
    message = {"role": "assistant", "content": text, **more}
    body = msgspec.json.encode({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    content, end, _ = answer(provider, body)
    return [block.get("thinking") or block.get("text") for block in content], end


UNOPENED = "Two and two...\n</think>\n\nFour."


def test_reasoning_of_a_whole_answer_whose_opening_tag_was_in_the_prompt_is_thinking() -> None:
    assert said_whole(UNOPENED) == (["Two and two...\n", "Four."], "end_turn")
    assert said_whole(f"```\ncode\n```\n{UNOPENED}")[0] == ["```\ncode\n```\nTwo and two...\n", "Four."]
    assert said_whole(UNOPENED, "openai") == ([UNOPENED], "end_turn")
    assert shown(*words(UNOPENED, 5)) == ([UNOPENED], "end_turn")  # what was shown cannot be taken back


@pytest.mark.parametrize(
    "text",
    [
        "It ends with </think>\n\nand then comes the answer.",
        "Write\n</think> behind it.",
        "```\nhm\n</think>\n```\nis how it ends.",
        "Between <think> and\n</think>\nthey think.",
        "One\n</think>\nand another\n</think>\nend it.",
        "It ends so:\n</think>\n",
        "\n\nHi",
    ],
)
def test_a_whole_answer_that_speaks_of_the_closing_tag_is_text(text: str) -> None:
    assert said_whole(text) == ([text], "end_turn")
