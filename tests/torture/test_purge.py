"""Purging while everybody works: two beats with clocks that differ, one of them killed again and again in mid-batch."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone

from tests.api.conftest import CHAT, Connect, Serve, Served
from tests.servers import chat
from tests.servers.bridge import PROJECT
from tests.servers.client import TOOL, Client, result
from tests.servers.keeper import kept
from tests.servers.ports import wait_until
from tests.torture.clock import skewed
from tests.torture.ledger import SCALE, Proof, Trials

CLIENTS = 200 if SCALE is not None else 6
SKEW = 300
IDLE_HOURS = "0.05"  # three minutes: less than the clocks differ
CALL = ("call_1", "get_weather", {"city": "Oslo"})
OWNED = ("Claim", "LiveSnapshot", "Replay", "ToolMapping", "ToolExecution", "Round", "Message", "Blob", "Turn")
TRIES = 20  # of a turn: with SQLite a beat may hold the one lock for too long
BATCH = 3  # conversations that are idle at a time


class Beat:
    """A purging process that comes back when it was killed."""

    def __init__(self, environment: dict[str, str], lives: random.Random | None) -> None:
        self._environment = environment
        self._lives = lives
        self._over = False
        self.batches = 0
        self.deaths = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over = True
        self._process.kill()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._over:
            command = [sys.executable, "-m", "tests.torture.purger"]
            with subprocess.Popen(
                command, cwd=PROJECT, env=self._environment, stdout=subprocess.PIPE, text=True
            ) as self._process:
                self._read(kept(self._process))
            self.deaths += 1

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        life = self._lives.randrange(5, 50) if self._lives else -1
        for line in process.stdout:
            self.batches += int(line)
            life -= 1
            if life == 0:
                # In the middle of the next one, somewhere.
                time.sleep(self._lives.uniform(0, 0.02) if self._lives else 0)
                process.kill()


@contextmanager
def beats(served: Served, folder: Path) -> Iterator[list[Beat]]:
    early, late = skewed(folder, -SKEW), skewed(folder, SKEW)
    started = [
        Beat(served.bridge.environment | late, None),
        Beat(served.bridge.environment | early, random.Random(1)),
    ]
    try:
        yield started
    finally:
        for beat in started:
            beat.stop()


class Active:
    """A client that goes on with its conversation, sending only what is new: were it gone, the next turn would fail."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self.turns = self.retries = 0
        self._call = self._ask("Weather?")

    def go_on(self) -> None:
        self._call = self._ask(result(self._call, f"sunny {self.turns}"))

    def _ask(self, message: object) -> str:
        headers = {"x-conversation-id": self.name, "x-conversation-mode": "append"}
        for _ in range(TRIES):
            response = self.client.ask(message, tools=[TOOL], headers=headers)
            if response.status_code != 529:
                break
            self.retries += 1
            time.sleep(0.5)
        assert response.status_code == 200, f"{self.name}, turn {self.turns}: {response.text}"
        self.turns += 1
        return str(response.json()["content"][0]["id"])


@pytest.mark.proves("purge")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"] if SCALE is not None else ["postgres"])
def test_only_what_is_idle_goes_and_all_of_it(
    serve: Serve, connect: Connect, request: pytest.FixtureRequest, tmp_path: Path,
    database_kind: str, proof: Proof, trials: Trials,
) -> None:  # fmt: skip
    url = request.getfixturevalue("postgres_url") if database_kind == "postgres" else None
    # One machine has one clock: with SQLite only the beats' killing is the trouble.
    folder = tmp_path if database_kind == "postgres" else Path("/nonexistent")
    skew = skewed(tmp_path, -SKEW) if database_kind == "postgres" else {}
    served = serve(url, BRIDGE_INACTIVITY_HOURS=IDLE_HOURS, **skew)
    served.upstream.always(CHAT, chat.calls(CALL))
    client = connect(served)
    active = [Active(client, f"active-{number}") for number in range(CLIENTS)]
    held = [Active(client, f"held-{number}") for number in range(5)]
    rows = served.records.conversations(client.api_key)
    rows.filter(external_id__startswith="held-").update(held=True, last_activity=_long_ago())
    template = rows.get(external_id="active-0")
    models = {name: list(served.records.rows(name).filter(conversation=template.pk)) for name in OWNED}
    wanted = trials(5_000, 80)
    with _beats(served, folder, database_kind) as started, _working(active, proof) as working:
        idle, deadline = 0, time.monotonic() + 120 + wanted
        while sum(beat.batches for beat in started) < wanted and time.monotonic() < deadline:
            idle += _make_idle(served, template, models, idle)
            wait_until(lambda: _left(served, client) <= BATCH * 3, "the beats purge", seconds=60)
        wait_until(lambda: _left(served, client) == 0, "everything idle is gone", seconds=90)
        batches, deaths = sum(beat.batches for beat in started), started[1].deaths
    proof.passed(batches)
    proof.worst("kills of a beat", deaths)
    proof.worst("turns of active clients", sum(each.turns for each in active))
    proof.worst("their retries", sum(each.retries for each in active))
    served.upstream.reset()
    assert working == [], working[:3]
    assert rows.filter(external_id__startswith="held-").count() == len(held)
    assert rows.filter(external_id__startswith="active-").count() == len(active)
    assert _orphans(served) == {}
    for each in held:
        served.chat(chat.calls(CALL))
        each.go_on()


@contextmanager
def _beats(served: Served, folder: Path, kind: str) -> Iterator[list[Beat]]:
    if kind == "postgres":
        with beats(served, folder) as started:
            yield started
        return
    started = [Beat(served.bridge.environment, None), Beat(served.bridge.environment, random.Random(1))]
    try:
        yield started
    finally:
        for beat in started:
            beat.stop()


@contextmanager
def _working(active: list[Active], proof: Proof) -> Iterator[list[str]]:
    """The clients go on, a few threads for all of them; what went wrong for one."""
    over, wrong = threading.Event(), list[str]()

    def work(mine: list[Active]) -> None:
        while not over.is_set():
            for each in mine:
                try:
                    each.go_on()
                except Exception as error:  # noqa: BLE001 - it is told at the end
                    wrong.append(f"{error}"[:500])
                    return
            over.wait(0.05)

    threads = [threading.Thread(target=work, args=(active[start::4],), daemon=True) for start in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield wrong
    finally:
        over.set()
        for thread in threads:
            thread.join(60)


def _make_idle(served: Served, source: Any, models: dict[str, list[Any]], number: int) -> int:
    """Copies of a conversation with all its rows, last active long ago."""
    for copy in range(BATCH):
        with transaction.atomic(using=served.records.alias):
            _copy(served, source, models, number + copy)
    return BATCH


def _copy(served: Served, source: Any, models: dict[str, list[Any]], number: int) -> None:
    source.pk = 10**15 + number
    source.external_id, source.last_activity = f"idle-{number}", _long_ago()
    source.save(using=served.records.alias, force_insert=True)
    for name, rows in models.items():
        for index, row in enumerate(rows):
            row.pk = (source.pk * 100 + index) if name == "Turn" else None
            row.conversation_id = source.pk
            row.request_id, row.token = f"req_{number}-{index}", f"{number}-{index}"
            row.tool_use_id = f"toolu_{number:016d}{index:08d}"
        served.records.rows(name).bulk_create(rows)


def _left(served: Served, client: Client) -> int:
    found = served.records.conversations(client.api_key)
    return found.filter(external_id__startswith="idle-").count() + found.filter(ended_at__isnull=False).count()


def _orphans(served: Served) -> dict[str, int]:
    found = {}
    with connections[served.records.alias].cursor() as cursor:
        for name in OWNED:
            meta = served.records.rows(name).model._meta
            table, column = meta.db_table, meta.get_field("conversation").column
            cursor.execute(
                f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM conversations_conversation)"  # noqa: S608
            )
            if count := cursor.fetchone()[0]:
                found[name] = count
    return found


def _long_ago() -> object:
    return timezone.now() - timedelta(days=3)


def test_a_revocation_by_a_machine_whose_clock_is_behind_is_heard(
    serve: Serve, connect: Connect, postgres_url: str, tmp_path: Path
) -> None:
    served = serve(postgres_url)
    served.upstream.always(CHAT, chat.text("ok"))
    client = connect(served)
    assert client.ask("Hi").status_code == 200
    served.bridge.manage("revoke_key", client.api_key, **skewed(tmp_path, -SKEW))
    wait_until(lambda: client.ask("Hi").status_code == 401, "the key is refused", seconds=20)
