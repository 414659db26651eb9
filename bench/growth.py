"""A conversation that grows: does its age cost anything, and what does the database keep of it?

The old conversation sends turn 1, 2, 3 ... n. The young one begins four turns before n, with the same bodies: its turn
5 is the old one's turn n, byte for byte.
"""

import asyncio
import sqlite3
import statistics
import time
from contextlib import closing
from pathlib import Path

from bench import bodies, load, machine
from bench.targets import Running

YOUNG = 5
COPIES = 12  # conversations at once: one turn alone is too short to be measured


def ages(target: Running, turns: int) -> list[dict[str, float]]:
    """For a few ages the cost of that turn, of an old conversation and of a young one with the same body."""
    marks = [turn for turn in (10, 25, 50, 100, 200, 350, 500) if turn < turns] + [turns]
    import uvloop  # noqa: PLC0415 - only who sends load needs it

    return uvloop.run(_ages(target, marks))


async def _ages(target: Running, marks: list[int]) -> list[dict[str, float]]:
    found, turn = [], 1
    for mark in marks:
        while turn < mark:
            await _turn(target, "old", turn)
            turn += 1
        old = await _turn(target, "old", mark)
        turn = mark + 1
        for young in range(mark - YOUNG + 1, mark):
            await _turn(target, f"young-{mark}", young)
        same = await _turn(target, f"young-{mark}", mark)
        found.append(
            {
                "turn": float(mark),
                "body_bytes": float(len(bodies.growing(mark))),
                "cpu_us": old[0],
                "p50_ms": old[1],
                "same_body_turn_5_cpu_us": same[0],
                "same_body_turn_5_p50_ms": same[1],
            }
        )
    return found


async def _turn(target: Running, name: str, turn: int) -> tuple[float, float]:
    """One turn of every copy, one after the other: CPU microseconds each, and the middle latency in milliseconds."""
    body, times = bodies.growing(turn), []
    slot = await load.connect(target.port, load.Result())
    before = machine.cpu(target.pid)
    for copy in range(COPIES):
        headers = (("x-conversation-id", f"{name}-{copy}"),)
        asked = load.Load(port=target.port, path=target.path, body=body, headers=headers)
        started = time.perf_counter()
        answer = await asyncio.wait_for(slot.send(load.request(asked)), 60)
        times.append(time.perf_counter() - started)
        if b" 200 " not in answer[:15]:
            raise SystemExit(f"turn {turn} of a growing conversation: {answer[:400]!r}")
    slot.transport.close()
    return (machine.cpu(target.pid) - before) * 1e6 / COPIES, statistics.median(times) * 1e3


def stored(target: Running, home: Path, turns: int = 200) -> dict[str, float]:
    """Bytes in the database after one conversation of so many turns, against what it said."""
    before = _size(home)
    for turn in range(1, turns + 1):
        result = load.ask(target.port, target.path, bodies.growing(turn), (("x-conversation-id", "stored"),))
        if result.complaint:
            raise SystemExit(f"turn {turn} of the stored conversation: {result.complaint}")
    time.sleep(1)
    grown, said = _size(home) - before, bodies.unique(turns)
    resent = sum(len(bodies.growing(turn)) for turn in range(1, turns + 1))
    return {
        "turns": float(turns),
        "database_bytes": float(grown),
        "unique_bytes": float(said),
        "resent_bytes": float(resent),
        "ratio": grown / said,
    }


def waited(home: Path, turns: int) -> dict[str, float]:
    """What the newest turns spent in the bridge before their upstream was called."""
    with closing(sqlite3.connect(home / "bridge.sqlite3", timeout=30)) as database:
        sql = "SELECT state_ms FROM conversations_turn ORDER BY id DESC LIMIT ?"
        times = sorted(value for (value,) in database.execute(sql, (turns,)))
    return {"p50_ms": times[len(times) // 2], "p95_ms": times[len(times) * 95 // 100]}


def _size(home: Path) -> int:
    with closing(sqlite3.connect(home / "bridge.sqlite3", timeout=30)) as database:
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        (free,) = database.execute("PRAGMA freelist_count").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)
