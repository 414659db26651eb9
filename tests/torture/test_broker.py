"""Redis, which is limits' memory and Celery's broker, dies and comes back, or falls silent. Nobody has to notice."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from tests.api.conftest import CHAT, settings
from tests.servers import chat
from tests.servers.bridge import PROJECT
from tests.servers.client import Client, body
from tests.servers.ports import wait_until
from tests.servers.records import Records, opened
from tests.servers.tree import Tree
from tests.servers.upstream import ScriptedUpstream
from tests.servers.valkey import Valkey
from tests.torture.ledger import SCALE, Proof, Trials
from tests.torture.load import Load
from tests.torture.proxy import Proxy

OUTAGE = 10.0 if SCALE is not None else 2.0
PROMPT = 2.0 if SCALE is not None else 10.0
RATE = 20 if SCALE is not None else 5
CELERY = [str(Path(sys.executable).with_name("celery")), "--app", "bridge_project.celery:app", "call"]


class Machine:
    """The whole tree of `manage.py up`, with Redis behind a proxy."""

    def __init__(self, tree: Tree, records: Records, redis: Valkey, proxy: Proxy, upstream: ScriptedUpstream) -> None:
        self.tree = tree
        self.records = records
        self.redis = redis
        self.proxy = proxy
        self.upstream = upstream
        self.url = f"http://127.0.0.1:{tree.port}"

    def purges(self, name: str) -> None:
        """A task that matters: queued, taken, done."""
        subprocess.run(
            [*CELERY, "conversations.tasks.purge_inactive"], cwd=PROJECT, env=self.tree._environment, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        rows = self.records.rows("Conversation").filter(external_id=name)
        wait_until(lambda: not rows.exists(), f"{name} is purged", seconds=60)


@pytest.fixture
def machine(tmp_path: Path, upstream: ScriptedUpstream, django_db_blocker: DjangoDbBlocker) -> Iterator[Machine]:
    with django_db_blocker.unblock(), ExitStack() as stack:
        redis = Valkey(tmp_path)
        redis.start()
        stack.callback(redis.stop)
        proxy = stack.enter_context(Proxy(redis.port))
        url = f"sqlite:///{tmp_path}/bridge.sqlite3"
        environment = settings(upstream) | {
            "DATABASE_URL": url,
            "REDIS_URL": f"redis://127.0.0.1:{proxy.port}/0",
            "BRIDGE_API_KEYS": "sk-test-" + "0" * 32,
        }
        tree = Tree(tmp_path / "home", environment)
        tree.start()
        stack.callback(tree.stop)
        records = stack.enter_context(opened("broker", url))
        yield Machine(tree, records, redis, proxy, upstream)


@pytest.mark.proves("broker")
def test_nobody_notices_that_redis_is_away(machine: Machine, proof: Proof, trials: Trials) -> None:
    machine.upstream.always(CHAT, chat.text("ok"))
    limited = machine.records.issue(requests_per_minute=100_000, concurrent_streams=1_000)
    for number in range(trials(20, 2)):
        kind = ("killed", "silent")[number % 2]
        with proof.trial(f"round {number}, {kind}"):
            _round(machine, limited, kind, number, proof)


@contextmanager
def away(machine: Machine, kind: str) -> Iterator[None]:
    if kind == "killed":
        machine.redis.kill()
    else:
        machine.proxy.stall()
    try:
        yield
    finally:
        if kind == "killed":
            machine.redis.start()
        else:
            machine.proxy.flow()


def _round(machine: Machine, limited: str, kind: str, number: int, proof: Proof) -> None:
    name = f"idle-{number}"
    with closing(Client(machine.url, limited)) as client:
        assert client.ask("Hi", headers={"x-conversation-id": name}).status_code == 200
    machine.records.rows("Conversation").filter(external_id=name).update(last_activity="2020-01-01T00:00:00Z")
    with (
        closing(Client(machine.url, machine.records.issue(requests_per_minute=3))) as strict,
        Load(machine.url, limited, RATE, lambda n: body(f"{number}, {n}", stream=n % 2 == 0)) as load,
    ):
        assert strict.ask("Hi").status_code == 200
        wait_until(lambda: len(load.replies) > 3, "traffic flows")
        with away(machine, kind):
            time.sleep(OUTAGE)
            # Each process counts by itself, with what it remembers: two more, and no more.
            assert [strict.ask("Hi").status_code for _ in range(3)] == [200, 200, 429]
        machine.purges(name)
    slowest = max(reply.seconds for reply in load.replies)
    proof.worst("slowest answer, seconds", slowest)
    assert all(reply.good and reply.ended for reply in load.replies), [r.text for r in load.replies if not r.good][:2]
    assert slowest < PROMPT
