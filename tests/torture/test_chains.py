"""Multi-turn tool chains with every provider while upstreams, network and store keep failing for moments.

A client does what Claude Code does: what fails for a moment is asked again. The models refuse any request that is not
the history as they told it, with their own state and ids: a chain that comes to its end was never damaged.
"""

import itertools
import random
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anthropic
import httpcore
import httpx2
import pytest
from anthropic import Anthropic

from tests.e2e.dialects.conversation import ECHOES, Conversation
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME, NAMES, settings
from tests.e2e.dialects.script import STEPS, Chain
from tests.servers.bridge import Bridge
from tests.servers.postgres import running_postgres
from tests.servers.script import Answer, Raw, Recorded, json_answer
from tests.torture.ledger import Proof, Trials
from tests.torture.proxy import Fault, Proxy

CLIENTS = 8
TRIES = 60  # of one turn, in about a minute; Claude Code makes ten, with longer pauses
PAUSE = 0.2
# Of a new connection to an upstream: what happens to it.
FAULTS = ("cut", "close", "stall", "delay", "half-open")


class UnsteadyModels(Models):
    """Some of its answers are those of a provider in trouble."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._trouble = 0.1
        self._number = itertools.count()

    def _answer_for(self, request: Recorded) -> Answer | Raw:
        if next(self._number) % 500 == 0:
            self.requests.clear()  # nobody looks at them here
        if self._random.random() < self._trouble:
            status = self._random.choice((429, 500, 502, 503, 529))
            return json_answer({"error": {"message": "try again"}}, status, {"retry-after": "0"})
        return super()._answer_for(request)


class Unsteady:
    """Everything around the bridge, and the thread that shakes it."""

    def __init__(
        self, bridge: Bridge, client_port: int, models: Models, shake: Callable[[random.Random], None]
    ) -> None:
        self.bridge = bridge
        self.url = f"http://127.0.0.1:{client_port}"
        self.models = models
        self._shake = shake
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Unsteady":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)

    def _run(self) -> None:
        chosen = random.Random(7)
        while not self._over.wait(chosen.uniform(0.5, 2.5)):
            self._shake(chosen)


def upstream_fault(seed: int) -> Callable[[int], Fault | None]:
    chosen = random.Random(seed)

    def plan(_: int) -> Fault | None:
        if chosen.random() < 0.7:
            return None
        return Fault(chosen.choice(FAULTS), chosen.randrange(20_000), chosen.uniform(0.05, 0.5))  # type: ignore[arg-type]

    return plan


@contextmanager
def unsteady(kind: str, folder: Path) -> Iterator[Unsteady]:
    with ExitStack() as stack:
        models = stack.enter_context(UnsteadyModels(1))
        upstream = stack.enter_context(Proxy(int(models.url.rpartition(":")[2])))
        upstream.plan = upstream_fault(2)
        shakes: list[Callable[[random.Random], None]] = []
        if kind == "postgres":
            postgres = stack.enter_context(running_postgres())
            store = stack.enter_context(Proxy(postgres.port))
            url = postgres.create_database().replace(f":{postgres.port}/", f":{store.port}/")
            shakes += [lambda _: _cut(store), lambda chosen: _stall(store, chosen), lambda _: store.forget()]
        else:
            url = f"sqlite:///{folder}/bridge.sqlite3"
            shakes += [lambda chosen: _lock(url, chosen)]
        environment = settings(f"http://127.0.0.1:{upstream.port}")
        environment |= {
            "DATABASE_URL": url,
            "BRIDGE_UPSTREAM_RETRIES": "2",
            "BRIDGE_UPSTREAM_IDLE_SECONDS": "2",
            "BRIDGE_HOLD_SECONDS": "1",
        }
        bridge = Bridge(folder / "home", environment)
        bridge.start()
        stack.callback(bridge.stop)
        network = stack.enter_context(Proxy(bridge.port))
        shakes += [lambda _: _cut(network), lambda _: _cut(upstream)]
        yield stack.enter_context(Unsteady(bridge, network.port, models, lambda chosen: chosen.choice(shakes)(chosen)))


def _cut(proxy: Proxy) -> None:
    proxy.cut()


def _stall(proxy: Proxy, chosen: random.Random) -> None:
    proxy.stall()
    time.sleep(chosen.uniform(0.1, 2.5))
    proxy.flow()


def _lock(url: str, chosen: random.Random) -> None:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(chosen.uniform(0.1, 2.5))
    finally:
        connection.close()


@pytest.mark.proves("chains")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"])
def test_chains_come_to_their_end_whatever_fails_for_a_moment(
    database_kind: str, tmp_path: Path, proof: Proof, trials: Trials
) -> None:
    proof.tolerance = 0.001
    count = trials(5_000, len(NAMES))
    with unsteady(database_kind, tmp_path) as around:
        local = threading.local()

        def play(number: int) -> None:
            if not hasattr(local, "sdk"):
                local.sdk = Anthropic(base_url=around.url, api_key=around.bridge.api_key, max_retries=0, timeout=60)
            name = NAMES[number % len(NAMES)]
            with proof.trial(f"{database_kind}, chain {number}, {name}"):
                retries = _chain(local.sdk, number, name, around.models)
                proof.worst("most retries of a chain", retries)

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(play, range(count)))
        unknown = [refusal for refusal in around.models.refusals if "UNKNOWN" in refusal.upper()]
        assert unknown == []
        assert around.models.refusals == []
    log = around.bridge.log.read_text(encoding="utf-8")
    assert "Traceback" not in log, log[log.index("Traceback") :][:3000]


def _chain(sdk: Anthropic, number: int, name: str, models: Models) -> int:
    chosen = random.Random(number)
    echo = chosen.choice(ECHOES)
    chain = Chain(f"t{number:05d}x", "own")
    conversation = Conversation(sdk, chain, stream=chosen.random() < 0.7, echo=echo)
    retries = 0
    for step in STEPS:
        failures: Counter[str] = Counter()
        for attempt in range(TRIES):
            try:
                message = conversation.turn(BY_NAME[name].route)
            except (anthropic.APIError, httpx2.HTTPError, httpcore.NetworkError) as error:  # the SDK lets a cut through
                failures[re.sub("req_[0-9A-Za-z]+", "", repr(error))] += 1
                if not _passing(error):
                    raise AssertionError(f"{echo}: {error}; {models.refusals[-1:]}") from error
                retries += 1
                time.sleep(min(PAUSE * (attempt + 1), 1.0))
            else:
                break
        else:
            raise AssertionError(f"{echo}: {TRIES} tries of one turn failed: {dict(failures)}")
        calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
        assert calls == [(call.name, call.arguments) for call in step.calls], f"{echo}: {calls}"
        assert message.stop_reason == ("tool_use" if step.calls else "end_turn")
    return retries


def _passing(error: Exception) -> bool:
    """Whether a client may hope that the same again works: no answer, half an answer, or a status that says so."""
    status = getattr(error, "status_code", 0)
    return status in (0, 200, 408, 409, 429) or status >= 500
