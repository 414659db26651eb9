"""What the processes beside this one tell: what they have changed, and which rows they can read."""

from typing import Any

from conversations.store.database import Database

PLAIN, PACKED, COMPRESSED = 0, 1, 2  # a message in a row; or several; one that is large, compressed
NEWEST = COMPRESSED
DEAD_AFTER = 30.0  # seconds without a sign of life
REMEMBERED = 86_400.0  # seconds after it, in which a version may be gone back to


def changes(db: Database, seconds: float, seen: set[int]) -> list[tuple[Any, ...]]:
    """Of the last seconds. The numbers first: the same ones are looked at again and again, and what a purge names is
    long."""
    since, ago = before_now(db, seconds)
    rows = db.query(f"SELECT id FROM conversations_change WHERE created_at > {since} ORDER BY id", (ago,))  # noqa: S608
    new = [number for (number,) in rows if number not in seen]
    if not new:
        return []
    sql = "SELECT id, kind, ref FROM conversations_change WHERE id >= %s AND id <= %s ORDER BY id"
    return [row for row in db.query(sql, (new[0], new[-1])) if row[0] not in seen]


def form(db: Database) -> int:
    """The newest form of rows that every process of the last day reads.

    While a version is rolled out, older ones still work. For a day after that they may be started again, and may have
    left a worker, of which nobody here knows.
    """
    since, ago = before_now(db, REMEMBERED)
    ((lowest,),) = db.query(f"SELECT MIN(form) FROM conversations_process WHERE seen_at > {since}", (ago,))  # noqa: S608
    return NEWEST if lowest is None else int(lowest)


def is_dead(db: Database, turn: int) -> bool:
    """Whether a turn is left to a process that gives no sign of life any more."""
    since, ago = before_now(db, DEAD_AFTER)
    living = f"SELECT id FROM conversations_process WHERE seen_at > {since}"  # noqa: S608
    sql = f"SELECT 1 FROM conversations_turn WHERE id = %s AND status = 'running' AND process NOT IN ({living})"  # noqa: S608
    return bool(db.query(sql, (turn, ago)))


def before_now(db: Database, seconds: float) -> tuple[str, str]:
    """By the clock that wrote it down: those of the machines may differ."""
    if db.sqlite:
        return "strftime('%Y-%m-%d %H:%M:%f', 'now', %s)", f"{-seconds:+.3f} seconds"
    return "NOW() - %s::interval", f"{seconds:.3f} seconds"
