"""Habits of servers that speak Chat Completions: each a stream, or a whole answer, read to what a client gets."""

from typing import Any

import pytest

from tests.translation.answers import Json, answer, chunk, piece
from tests.translation.frames import sse

COUNTS = {"prompt_tokens": 3, "completion_tokens": 1}
CALL = piece('{"path":"1"}', "Read", "c")
ONE = {"path": "1"}


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
