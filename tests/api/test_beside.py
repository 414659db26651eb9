"""The steps of large requests, and the rests between them."""

import time

from conversations.beside import FELT, LARGE, REST, beside


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
