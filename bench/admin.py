"""Times of the admin's lists on a large database: `python bench/admin.py [rows]`, DATABASE_URL for PostgreSQL."""

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")
os.environ["BRIDGE_HOME"] = tempfile.mkdtemp(prefix="toolbridge-bench-")
os.environ["BRIDGE_ALLOWED_HOSTS"] = "testserver"

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from tests.admin import rows  # noqa: E402
from tests.admin.test_lists import PAGES  # noqa: E402


def main(number: int) -> None:
    call_command("migrate", verbosity=0)
    operator = User.objects.create_superuser("bench")
    started = time.perf_counter()
    rows.seed(number)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    say(f"{number:,} conversations on {connection.vendor}, seeded in {time.perf_counter() - started:.0f} s")
    browser = Client()
    browser.force_login(operator, "django.contrib.auth.backends.ModelBackend")
    browser.get("/admin/conversations/conversation/")
    for page in PAGES:
        times, queries = [], 0
        for _ in range(3):
            with CaptureQueriesContext(connection) as seen:
                started = time.perf_counter()
                assert browser.get(f"/admin/conversations/{page}").status_code == 200, page
                times.append(time.perf_counter() - started)
            queries = len(seen)
        say(f"{max(times) * 1000:7.0f} ms {queries:3} queries  {page}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
