"""Old conversations by the million, made by the database itself: `python -m bench.seed NUMBER` with its DATABASE_URL.

Each has a turn, a question and its answer, a tool call and a line in the ledger, three days old.
"""

import datetime as dt
import os
import sys
import time
from typing import Any

STEP = 20_000
OLD = dt.timedelta(days=3)


def main(number: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")
    import django  # noqa: PLC0415 - its settings are read from the environment

    django.setup()
    from django.db import connection  # noqa: PLC0415

    started = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(id) FROM conversations_apikey")
        (key,) = cursor.fetchone()
        for first in range(1, number + 1, STEP):
            for sql in statements(connection.vendor, key, first, min(first + STEP - 1, number)):
                cursor.execute(sql)
        cursor.execute("ANALYZE")
    sys.stdout.write(f"{number} conversations in {time.perf_counter() - started:.0f} s\n")


def statements(vendor: str, key: int, first: int, last: int) -> list[str]:
    from conversations.models import Conversation, Message, ToolMapping, Turn, UsageEntry  # noqa: PLC0415

    own = {"api_key_id": str(key), "conversation_id": "n", "turn_id": "n"}
    name, text = "'old-' || n", _bytes(vendor, b'[{"type":"text","text":"What was said, some time ago."}]')
    bulk = {"sent_tail": _random(vendor, 300), "answer": _random(vendor, 300)}
    said = {"content": text, "chain_hash": _random(vendor, 16)}
    rows: list[tuple[Any, dict[str, str]]] = [
        (Conversation, {"id": "n", "external_id": name, "turn_count": "1"}),
        (Turn, bulk | {"id": "n", "request_id": name, "message_id": name, "status": "'complete'"}),
        (Message, said | {"role": "'user'", "depth": "1"}),
        (Message, said | {"role": "'assistant'", "depth": "2", "answers": "1", "message_id": name}),
        (ToolMapping, {"tool_use_id": name, "tool_name": "'Bash'", "arguments": text}),
        (UsageEntry, {"conversation_id": name, "request_id": name}),
    ]
    return [_insert(vendor, first, last, model, own | columns) for model, columns in rows]


def _insert(vendor: str, first: int, last: int, model: Any, given: dict[str, str]) -> str:
    columns = {
        field.column: given.get(field.column) or _nothing(vendor, field)
        for field in model._meta.concrete_fields
        if field.column in given or not field.get_internal_type().endswith("AutoField")
    }
    numbers = f"SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}"  # noqa: S608
    return (
        f"WITH RECURSIVE numbers (n) AS ({numbers}) INSERT INTO {model._meta.db_table} ({', '.join(columns)}) "  # noqa: S608
        f"SELECT {', '.join(columns.values())} FROM numbers"
    )


def _nothing(vendor: str, field: Any) -> str:
    kind = field.get_internal_type()
    if kind == "DateTimeField" and not field.null:
        moment = (dt.datetime.now(dt.UTC) - OLD).replace(tzinfo=None).isoformat(" ")
        return f"TIMESTAMPTZ '{moment}Z'" if vendor == "postgresql" else f"'{moment}'"
    if field.null:
        return "NULL"
    return {"BinaryField": _bytes(vendor, b""), "BooleanField": "FALSE", "CharField": "''", "TextField": "''"}.get(
        kind, "0"
    )


def _bytes(vendor: str, data: bytes) -> str:
    return f"'\\x{data.hex()}'::bytea" if vendor == "postgresql" else f"X'{data.hex()}'"


def _random(vendor: str, size: int) -> str:
    if vendor != "postgresql":
        return f"randomblob({size})"
    digests = " || ".join(["md5(random()::text || n)"] * -(-size // 16))
    return f"substring(decode({digests}, 'hex') from 1 for {size})"


if __name__ == "__main__":
    main(int(sys.argv[1]))
