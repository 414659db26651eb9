"""The store by itself: group commit and reads, without HTTP. `python -m bench.micro HOME` prints one JSON object.

Runs in a process of its own, with a database of its own.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench.bodies import ANSWER, exchange

ROUNDS = 40


def main(home: Path, scale: float) -> None:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "bridge_project.settings", "BRIDGE_HOME": str(home)}
    import django  # noqa: PLC0415 - its settings are read from the environment that was just made

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    sys.stdout.write(json.dumps(asyncio.run(measure(max(int(ROUNDS * scale), 3)))) + "\n")


async def measure(rounds: int) -> dict[str, float]:
    from asgiref.sync import sync_to_async  # noqa: PLC0415 - after the set-up

    from conversations import ids, keys  # noqa: PLC0415
    from conversations.store import Store, answers, reads  # noqa: PLC0415

    key, _ = await sync_to_async(keys.issue)("bench")
    rows, store = ids.RowIds(1), Store()
    store.start()
    figures: dict[str, float] = {}
    for many in (1, 32):
        writes = [[_opening(rows, key.pk, f"{many}-{number}-{one}") for one in range(many)] for number in range(rounds)]
        started, spent = time.perf_counter(), time.process_time()
        for batch in writes:
            await asyncio.gather(*(store.write(write) for write in batch))
        count = rounds * many
        figures[f"commit_{many}_ms"] = (time.perf_counter() - started) * 1e3 / rounds
        figures[f"commit_{many}_cpu_us_per_turn"] = (time.process_time() - spent) * 1e6 / count
    last = writes[-1][-1].conversation
    for name, job in (
        ("by_name", lambda db: reads.conversation(db, key.pk, last.external_id)),
        ("last_answer", lambda db: answers.last_answer(db, last.id)),
        ("path", lambda db: reads.path(db, last.id, writes[-1][-1].head_hash)),
    ):
        started = time.perf_counter()
        for _ in range(rounds):
            await store.read(job, None)
        figures[f"read_{name}_ms"] = (time.perf_counter() - started) * 1e3 / rounds
    await store.stop()
    return figures


def _opening(rows: Any, key: int, name: str) -> Any:
    """The opening write of a conversation with ten messages."""
    from conversations.store.writes import ConversationRow, MessageRow, OpenTurn  # noqa: PLC0415 - after the set-up

    messages, parent = [], b""
    for depth in range(1, 11):
        said = json.dumps(exchange(depth)[depth % 2]["content"]).encode()
        digest = f"{name}:{depth}".encode().rjust(16, b"\0")[-16:]
        messages.append(MessageRow(digest, parent, depth, 0, "user" if depth % 2 else "assistant", said))
        parent = digest
    return OpenTurn(
        conversation=ConversationRow(rows.mint(), key, name, "new"), created=True, turn=rows.mint(), process=1,
        request_id=f"req_{name}", message_id=f"msg_{name}", now="2026-01-01 00:00:00.000000", requested_model="bench",
        stream=False, head_hash=parent, system_digest=b"", tools_digest=b"", upstream="bench", resolved_model="bench",
        note_count=0, sent_parent=None, sent_prefix=0, sent_tail=ANSWER.encode() * 20, sent_depth=0, state_ms=0.0,
        messages=tuple(messages), params=b"{}", headers=b"{}", notes=b"[]", sent_meta=b"{}",
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
