"""Times of the operators' pages on a large database.

    python -m bench.admin                          # SQLite: 100,000 conversations
    python -m bench.admin --database postgres      # its own PostgreSQL: 100,000 conversations, 1,000,000 turns

Prints a table of Markdown; docs/console.md has the last one.
"""

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import Any

from bench.machine import described

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")
os.environ["BRIDGE_HOME"] = tempfile.mkdtemp(prefix="toolbridge-bench-")
os.environ["BRIDGE_ALLOWED_HOSTS"] = "testserver"

VISITS = 8  # of each page, after one that warms it
TEXTS = ('"the service"', "w77 w1203", "order4711", "w3999 failed", "no such words", "serv*")
LIMIT = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--conversations", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=0, help="of each conversation; 1 on SQLite, 10 on PostgreSQL")
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.database == "postgres":
            from tests.servers.postgres import running_postgres  # noqa: PLC0415

            settings = ("shared_buffers=512MB", "max_connections=50", "fsync=off", "synchronous_commit=off")
            os.environ["DATABASE_URL"] = stack.enter_context(running_postgres(settings)).create_database()
        import django  # noqa: PLC0415

        django.setup()
        return measure(given.conversations, given.turns or (1 if given.database == "sqlite" else 10))


def measure(conversations: int, each: int) -> int:
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    from bench.admin_rows import Seed  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    started = time.perf_counter()
    Seed(conversations, each, time.time()).fill()
    rows = f"{connection.vendor}: {conversations:,} conversations, {conversations * each:,} turns"
    say(f"{rows}, seeded in {time.perf_counter() - started:.0f} s")
    say(f"{described()}, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}\n")
    say("| page | p50 ms | p95 ms | CPU ms | queries |\n|---|---|---|---|---|")
    slow = [page for page, p95 in visited() if p95 > LIMIT]
    say(f"\n{len(slow)} pages are above {LIMIT:g} s: {', '.join(slow) or 'none'}")
    return len(slow)


def visited() -> Any:
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.db import connection, connections, reset_queries  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    browser = Client()
    browser.force_login(User.objects.create_superuser("bench"), "django.contrib.auth.backends.ModelBackend")
    for page in pages():
        times, queries, busy = [], 0, time.process_time()
        reset_queries()
        for visit in range(VISITS + 1):
            with CaptureQueriesContext(connection) as seen:
                started = time.perf_counter()
                assert browser.get(page).status_code == 200, page
                times.append(time.perf_counter() - started)
            queries = len(seen)
            if visit == 0:
                times.clear()
                busy = time.process_time()
        cpu = (time.process_time() - busy) / VISITS
        times.sort()
        p50, p95 = times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.95))]
        figures = " | ".join(f"{seconds * 1000:.0f}" for seconds in (p50, p95, cpu))
        say(f"| `{page.removeprefix('/admin/')}` | {figures} | {queries} |")
        yield page, p95
    connections.close_all()


def pages() -> list[str]:
    from conversations.models import Conversation, Turn  # noqa: PLC0415
    from tests.admin.test_lists import PAGES  # noqa: PLC0415

    conversation, turn = Conversation.objects.order_by("-pk")[0].pk, Turn.objects.order_by("-pk")[0].pk
    texts = [f"{name}/?q={text}" for name in ("conversation", "turn", "toolmapping") for text in TEXTS]
    own = [f"conversation/{conversation}/toolchain/", f"turn/{turn}/hops/", "turn/?q=rate_limit_error"]
    ranges = [f"/admin/?range={name}" for name in ("1h", "24h", "7d", "30d")]
    return [*ranges, *(f"/admin/conversations/{page}" for page in (*own, *PAGES, *texts))]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
