"""The steps of large requests, and the rests between them."""

import json
import time

import pytest

from conversations.beside import FELT, LARGE, REST, beside, size_of
from translation.client.parse import parse
from translation.openai_client.parse import parse as parse_chat
from translation.values import Request


def _long() -> float:
    """A step that others feel; when it ended."""
    until = time.thread_time() + 2 * FELT
    while time.thread_time() < until:
        pass
    return time.monotonic()


async def test_a_step_that_others_feel_is_followed_by_a_rest() -> None:
    ended = await beside(LARGE, _long)
    begun = await beside(LARGE, time.monotonic)
    assert begun - ended >= REST * FELT


async def test_what_is_not_large_is_done_at_once() -> None:
    seen: list[int] = []
    await beside(LARGE - 1, seen.append, 1)
    assert seen == [1]


LONG = json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x" * LARGE}]}).encode()


@pytest.mark.parametrize("request_", [parse(LONG, "", ()), parse_chat(LONG).request], ids=["messages", "chat"])
def test_one_long_message_is_large_in_any_dialect(request_: Request) -> None:
    assert size_of(request_) >= LARGE
