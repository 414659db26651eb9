"""Streams that bring much at once take turns."""

import asyncio
import time
from itertools import pairwise

from conversations.lane import CROWD, Lane

WORK = 0.002  # seconds


async def test_a_turn_of_the_loop_works_on_one_in_order_of_arrival() -> None:
    lane, worked = Lane(), list[tuple[int, int]]()
    turns = 0

    async def stream(number: int) -> None:
        for _ in range(2):
            await lane.turn()
            worked.append((turns, number))

    streams = [asyncio.create_task(stream(number)) for number in range(5)]
    while not all(each.done() for each in streams):
        await asyncio.sleep(0)
        turns += 1
    assert [number for _, number in worked] == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    assert len({turn for turn, _ in worked}) == len(worked)


async def test_who_left_the_lane_keeps_nobody_waiting() -> None:
    lane = Lane()
    leaving, staying = (asyncio.create_task(lane.turn()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    async with asyncio.timeout(5):
        await staying
        await lane.turn()


async def gaps(lane: Lane, crowd: int) -> list[int]:
    """How many turns of the loop there were from each large read to the next."""
    worked, turns = list[int](), 0

    async def stream() -> None:
        await lane.turn()
        worked.append(turns)
        time.sleep(WORK)  # noqa: ASYNC251 - it is work, which the loop waits for

    streams = [asyncio.create_task(stream()) for _ in range(crowd)]
    while not all(each.done() for each in streams):
        await asyncio.sleep(0)
        turns += 1
    return [after - before for before, after in pairwise(worked)]


async def test_a_crowd_leaves_time_to_who_asks_meanwhile() -> None:
    lane = Lane()
    lane.sign = time.perf_counter() + 60
    assert max(await gaps(lane, CROWD * 2)) > 10


async def test_a_crowd_goes_on_as_soon_as_nobody_has_asked_for_a_moment() -> None:
    lane = Lane()
    lane.sign = time.perf_counter()
    assert (await gaps(lane, CROWD * 2)).count(1) > CROWD


async def test_nobody_rests_for_nobody_nor_a_few_for_others() -> None:
    lane = Lane()
    assert set(await gaps(lane, CROWD * 2)) == {1}
    lane.sign = time.perf_counter() + 60
    assert set(await gaps(lane, CROWD)) == {1}
