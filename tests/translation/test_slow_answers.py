"""Answers of many small pieces, as models in a loop and strange servers send them: each takes a second at most.

What reads all that came before with each piece would take minutes, and run into the suite's time limit.
"""

from typing import Any

import pytest

from tests.translation.answers import answer, calls, chunk, piece
from tests.translation.frames import sse

MANY = 60_000
BEGUN, ENDED = '{"path":"', '"}'
WORDS = "x" * MANY


def reads(data: bytes) -> list[bytes]:
    return [data[start : start + 16_384] for start in range(0, len(data), 16_384)]


def read(provider: str, *events: Any) -> list[tuple[str, Any]]:
    return calls(answer(provider, *reads(sse(*events, chunk(finish="tool_calls"), b"[DONE]")))[0])


def test_a_name_with_each_piece_of_the_arguments() -> None:
    pieces = [piece(BEGUN, "Read", "a"), *[piece("x", "Read")] * MANY, piece(ENDED, "Read")]
    assert read("openai", *pieces) == [("Read", {"path": WORDS})]


def test_a_finish_reason_with_each_piece_of_the_arguments() -> None:
    pieces = [piece(BEGUN, "Read", "a"), *[piece("x")] * MANY, piece(ENDED)]
    for one in (*pieces[:2], pieces[-1]):
        one["choices"][0]["finish_reason"] = "tool_calls"
    assert read("openai", *pieces) == [("Read", {"path": WORDS})]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_white_space_before_the_arguments(provider: str) -> None:
    if provider == "openai":
        assert read(provider, piece("{}", "Read", "a"), *[piece(" " * 8)] * MANY, piece("{}")) == [("Read", {})]
        return
    block = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": " " * 8}
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
    stream = sse(
        {"type": "message_start", "message": {"id": "msg_1", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *[{"type": "content_block_delta", "index": 0, "delta": delta}] * MANY,
        {"type": "content_block_stop", "index": 0},
        end,
        {"type": "message_stop"},
    )
    assert calls(answer(provider, *reads(stream))[0]) == [("Read", {})]


@pytest.mark.parametrize("index", [True, False])
def test_calls_without_end(index: bool) -> None:
    pieces = [piece("{}", "Read", f"c{number}", number if index else None) for number in range(MANY // 3)]
    assert len(read("openai", *pieces)) == len(pieces)


def test_keys_without_values_in_a_call_in_the_text() -> None:
    text = "<tool_call>Read\n" + "<arg_key>path</arg_key>\n<arg_value>" * (MANY // 3) + "</tool_call>"
    assert read("vllm", chunk({"content": text})) == []
