"""A conversation that grows: does its age cost anything, and what does the database keep of it?

The old conversation sends turn 1, 2, 3 ... n. The young one begins four turns before n, with the same bodies: its turn
5 is the old one's turn n, byte for byte. As threads, each turn sends only what is new: the young one's first request
brings everything before it, so that both have the same history to be read and sent.
"""

import asyncio
import json
import sqlite3
import statistics
import time
from contextlib import closing
from pathlib import Path

import psycopg

from bench import bodies, load, machine
from bench.targets import Running

YOUNG = 5
COPIES = 12


def ages(target: Running, turns: int, *, threads: bool = False) -> list[dict[str, float]]:
    """For a few ages the cost of that turn, of an old conversation and of a young one with the same history."""
    marks = [turn for turn in (10, 25, 50, 100, 200, 350, 500) if turn < turns] + [turns]
    import uvloop  # noqa: PLC0415 - only who sends load needs it

    return uvloop.run(_ages(target, marks, threads=threads))


async def _ages(target: Running, marks: list[int], *, threads: bool) -> list[dict[str, float]]:
    found, turn, old = [], 1, Growing(target, "old", threads=threads)
    for mark in marks:
        while turn < mark:
            await old.take(turn)
            turn += 1
        young = Growing(target, f"young-{mark}", threads=threads)
        for number in range(mark - YOUNG + 1, mark):
            await young.take(number)
        cost, same = await old.take(mark), await young.take(mark)
        turn = mark + 1
        found.append(
            {
                "turn": float(mark),
                "body_bytes": float(len(bodies.growing(mark))),
                "cpu_us": cost[0],
                "p50_ms": cost[1],
                "same_body_turn_5_cpu_us": same[0],
                "same_body_turn_5_p50_ms": same[1],
            }
        )
    return found


class Growing:
    """Several conversations that say the same: one turn alone is too short to be measured."""

    def __init__(self, target: Running, name: str, *, threads: bool) -> None:
        self._target, self._name, self._threads = target, name, threads
        self._last = [""] * COPIES  # messages that threads go on from

    async def take(self, turn: int) -> tuple[float, float]:
        """One turn of every copy, one after the other: CPU microseconds each, and the middle latency in ms."""
        target, times = self._target, []
        slot = await load.connect(target.port, load.Result())
        sent = [self._request(turn, copy) for copy in range(COPIES)]
        before = machine.cpu(target.pid)
        for copy in range(COPIES):
            started = time.perf_counter()
            answer = await asyncio.wait_for(slot.send(sent[copy]), 60)
            times.append(time.perf_counter() - started)
            if b" 200 " not in answer[:15]:
                raise SystemExit(f"turn {turn} of a growing conversation: {answer[:400]!r}")
            self._last[copy] = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
        spent = machine.cpu(target.pid) - before
        slot.transport.close()
        return spent * 1e6 / COPIES, statistics.median(times) * 1e3

    def _request(self, turn: int, copy: int) -> bytes:
        body = bodies.continued(turn, self._last[copy]) if self._threads else bodies.growing(turn)
        headers = () if self._threads else (("x-conversation-id", f"{self._name}-{copy}"),)
        return load.request(load.Load(port=self._target.port, path=self._target.path, body=body, headers=headers))


def stored(target: Running, database: "Kept", turns: int = 200) -> dict[str, float]:
    """Bytes and rows in the database after one conversation of so many turns, against what it said."""
    before = database.size(), database.rows()
    for turn in range(1, turns + 1):
        result = load.ask(target.port, target.path, bodies.growing(turn), (("x-conversation-id", "stored"),))
        if result.complaint:
            raise SystemExit(f"turn {turn} of the stored conversation: {result.complaint}")
    time.sleep(1)
    grown, said = database.size() - before[0], bodies.unique(turns)
    return {
        "turns": float(turns),
        "rows": float(database.rows() - before[1]),
        "database_bytes": float(grown),
        "unique_bytes": float(said),
        "resent_bytes": float(sum(len(bodies.growing(turn)) for turn in range(1, turns + 1))),
        "ratio": grown / said,
    }


class Kept:
    """What a database holds: an SQLite file, or a PostgreSQL by its URL."""

    TABLES = ("conversation", "turn", "message", "toolmapping", "blob", "claim", "usageentry", "toolentry")

    def __init__(self, where: Path | str) -> None:
        self._where = where

    def size(self) -> int:
        if isinstance(self._where, str):
            return self._ask("SELECT pg_database_size(current_database())")
        pages, free, size = (self._ask(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * size

    def rows(self) -> int:
        return sum(self._ask(f"SELECT count(*) FROM conversations_{table}") for table in self.TABLES)  # noqa: S608

    def _ask(self, sql: str) -> int:
        if isinstance(self._where, str):
            with psycopg.connect(self._where) as server:
                return int((server.execute(sql.encode()).fetchone() or (0,))[0])
        with closing(sqlite3.connect(self._where, timeout=30)) as file:
            return int(file.execute(sql).fetchone()[0])


def waited(home: Path, turns: int) -> dict[str, float]:
    """What the newest turns spent in the bridge before their upstream was called."""
    with closing(sqlite3.connect(home / "bridge.sqlite3", timeout=30)) as database:
        sql = "SELECT state_ms FROM conversations_turn ORDER BY id DESC LIMIT ?"
        times = sorted(value for (value,) in database.execute(sql, (turns,)))
    return {"p50_ms": times[len(times) // 2], "p95_ms": times[len(times) * 95 // 100]}
