"""Streams that bring much at once take turns."""

import asyncio

from conversations.lane import Lane


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
