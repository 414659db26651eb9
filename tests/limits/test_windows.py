"""When Redis is away, and when it only was not heard."""

import asyncio
import socket
import time

from conversations.windows import ADMITTED, PATIENCE, SharedWindows, Verdict


def test_a_process_that_was_too_busy_to_hear_redis_does_not_count_by_itself(redis_url: str) -> None:
    async def ask() -> list[Verdict | None]:
        windows = SharedWindows(redis_url)
        first = await windows.admit(-1, 2, 0, "a", "")
        asked = [asyncio.ensure_future(windows.admit(-1, 2, 0, name, "")) for name in "bc"]
        await asyncio.sleep(0)  # they have begun
        for _ in range(3):
            time.sleep(2 * PATIENCE)  # noqa: ASYNC251 - that is the busy process
            await asyncio.sleep(0)
        verdicts = [first, *await asyncio.gather(*asked)]
        await windows.close()
        return verdicts

    first, second, third = asyncio.run(ask())
    assert first == second == ADMITTED
    assert third is not None
    assert third.kind == "rate"


def test_a_redis_that_says_nothing_is_away() -> None:
    async def ask(url: str) -> tuple[Verdict | None, int]:
        windows = SharedWindows(url)
        verdict = await windows.admit(1, 2, 0, "a", "")
        await windows.close()
        return verdict, windows.failures

    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert asyncio.run(ask(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")) == (None, 1)
