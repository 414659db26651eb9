"""The database dies in every way that databases die, under steady traffic. Own faults look like it, and heal."""

import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from tests.api.conftest import CHAT, Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import TOOL, Client, result
from tests.servers.ports import wait_until
from tests.servers.postgres import Postgres, running_postgres
from tests.servers.script import Gate, sse_answer
from tests.torture.database_faults import files, full, locked, postgres_faults, small_disk, sqlite_faults
from tests.torture.ledger import SCALE, Proof, Trials
from tests.torture.load import Load, Reply
from tests.torture.proxy import Proxy

FULL = SCALE is not None
RATE = 50 if FULL else 10
OUTAGE = 60 * min(1.0, max(SCALE * 10, 0.1)) if SCALE is not None else 1.0  # seconds
# A loaded machine of the suite is given more time than the promise says.
PROMPT = 2.0 if FULL else 8.0
RECOVERY = 10.0 if FULL else 30.0
CALL = ("call_1", "get_weather", {"city": "Oslo"})
SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "max_connections=40",
    "superuser_reserved_connections=0",
    "shared_buffers=16MB",
)


@pytest.mark.proves("database")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"])
def test_own_faults_look_like_own_faults_and_heal(
    serve: Serve, connect: Connect, database_kind: str, proof: Proof, trials: Trials
) -> None:
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk())
        backends: Callable[[], int] | None = None
        if database_kind == "postgres":
            postgres = stack.enter_context(running_postgres(SETTINGS))
            proxy = stack.enter_context(Proxy(postgres.port))
            url = postgres.create_database(disk).replace(f":{postgres.port}/", f":{proxy.port}/")
            served = serve(url)
            faults, backends = postgres_faults(postgres, proxy, disk), partial(_backends, postgres)
        else:
            served = serve(f"sqlite:///{disk}/bridge.sqlite3" if disk else None)
            faults = sqlite_faults(served, disk)
        client = connect(served)
        served.upstream.always(CHAT, chat.streamed_calls(CALL))
        assert client.ask("Hi").status_code == 200
        rounds = trials(20 / 9 * len(faults), len(faults))
        for number in range(max(rounds, len(faults))):
            name = list(faults)[number % len(faults)]
            with proof.trial(f"{database_kind}, {name}"):
                _outage(served, client, faults[name], proof, backends)
        served.bridge.stop()


def _outage(
    served: Served, client: Client, fault: Callable[[], AbstractContextManager[None]], proof: Proof,
    backends: Callable[[], int] | None,
) -> None:  # fmt: skip
    before, serving = _connections(served), backends() if backends else 0
    with Load(served.bridge.url, client.api_key, RATE) as load:
        wait_until(lambda: sum(reply.good for reply in load.replies) >= 5, "traffic flows")
        with fault():
            began = time.monotonic()
            _unready(served)
            time.sleep(max(0.0, OUTAGE - (time.monotonic() - began)))
            over = time.monotonic()
        healed = _healed(served, load, over)
        proof.worst("seconds until it heals", healed)
    _answered(load.replies, began, over, proof)
    assert healed <= RECOVERY, f"healed after {healed:.1f} s"
    _kept(served, client, load.replies)
    proof.worst("connections to the database after it", _connections(served))
    wait_until(lambda: _connections(served) <= before, f"no connection is leaked ({before} before)", seconds=15)
    # The test's own connection may be among them, before or after.
    if backends:
        wait_until(lambda: backends() <= serving + 1, f"no backend is left over ({serving} before)", seconds=15)


def _unready(served: Served) -> None:
    """Within the time that the heartbeat takes to notice."""
    wait_until(lambda: served.bridge.status("/readyz") == 503, "/readyz says 503", seconds=RECOVERY)
    alive = time.monotonic()
    assert served.bridge.status("/livez") == 200
    assert time.monotonic() - alive < PROMPT, "/livez answers at once"


def _healed(served: Served, load: Load, over: float) -> float:
    """Seconds from the fault's end until ten answers in a row are good and it is ready again."""

    def healthy() -> bool:
        last = load.since(over)[-10:]
        return len(last) == 10 and all(reply.good for reply in last)

    wait_until(healthy, "ten answers in a row are good", seconds=60)
    wait_until(lambda: served.bridge.status("/readyz") == 200, "/readyz says 200", seconds=60)
    return time.monotonic() - over - 10 / RATE


def _answered(replies: list[Reply], began: float, over: float, proof: Proof) -> None:
    during = [reply for reply in replies if began <= reply.began <= over]
    refused = [reply for reply in during if reply.status != 200]
    assert refused, "the fault was felt"
    for reply in replies:
        assert reply.status in (200, 503, 529), f"{reply.status}: {reply.text[:300]}"
        assert reply.ended, f"a stream without its one terminator: {reply.text[-300:]}"
        if reply.status != 200:
            assert int(reply.retry_after) >= 1
            assert '"overloaded_error"' in reply.text
    # What the machine itself makes of this traffic, for comparison.
    proof.worst("slowest answer before it, seconds", max(reply.seconds for reply in replies if reply.began < began))
    slowest = max(reply.seconds for reply in during)
    proof.worst("slowest answer in an outage, seconds", slowest)
    assert slowest <= PROMPT, f"an answer took {slowest:.2f} s"


def _kept(served: Served, client: Client, replies: list[Reply]) -> None:
    """Every call that was shown is known, and no turn was forgotten."""
    served.records.reconnect()
    shown = {call for reply in replies for call in reply.calls}
    stored = set(served.records.rows("ToolMapping").filter(tool_use_id__in=shown).values_list("tool_use_id", flat=True))
    assert shown == stored, f"{len(shown - stored)} calls were shown and not stored"
    running = served.records.turns(client.api_key).filter(status="running")
    wait_until(lambda: not running.exists(), "no turn is left running", seconds=90)
    assert client.ask(result(next(iter(shown))), tools=[TOOL]).status_code == 200


def _connections(served: Served) -> int:
    """To the database, from the bridge's own point of view: open sockets, or open files."""
    bridge, port = psutil.Process(served.bridge.pid), urlsplit(served.database_url).port
    if port is None:
        return sum(Path(each.path) in files(served) for each in bridge.open_files())
    return sum(bool(each.raddr) and each.raddr.port == port for each in bridge.net_connections())


def _backends(postgres: Postgres) -> int:
    """The same from the server's point of view."""
    with psycopg.connect(postgres.address()) as admin:
        counted = admin.execute("SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'test_%'").fetchone()
    assert counted is not None
    return int(counted[0])


def test_a_request_that_a_stall_refused_can_be_made_again(serve: Serve, connect: Connect) -> None:
    """Its turn was stored after all, when the lock was gone; it must not keep the same request waiting for ever."""
    served = serve()
    client = connect(served)
    served.upstream.always(CHAT, chat.streamed_text("ok"))
    assert client.ask("Hi").status_code == 200
    headers = {"x-conversation-id": "mine"}
    with locked(served):
        assert client.ask("Weather?", headers=headers).status_code == 529
    wait_until(lambda: client.ask("Weather?", headers=headers).status_code == 200, "the same again is answered")
    running = served.records.turns(client.api_key).filter(status="running")
    wait_until(lambda: not running.exists(), "no turn is left running")


def test_a_whole_answer_has_one_patience_with_a_store_that_stalls_twice(serve: Serve, connect: Connect) -> None:
    served = serve()
    client, gate = connect(served), Gate()
    served.chat(sse_answer(*chat.call_chunks(CALL), gate, *chat.ending("tool_calls")))
    with ThreadPoolExecutor(1) as asking:
        with locked(served):
            answer = asking.submit(client.ask, "Weather?", tools=[TOOL])
            time.sleep(0.9)  # of the 1.25 that it has
        wait_until(served.records.rows("ToolMapping").exists, "its call is stored")
        with locked(served):
            gate.open()
            time.sleep(1.1)
        assert answer.result().status_code == 529


def test_a_turn_whose_answer_could_not_be_stored_does_not_stay_running(serve: Serve, connect: Connect) -> None:
    served = serve()
    client, gate = connect(served), Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, *chat.ending("stop")))
    with client.stream("Hi") as (_, events):
        seen = [next(events), next(events), next(events)]
        with full(served):
            gate.open()
            seen += list(events)
    assert seen[-1].name == "error"
    assert [turn.status for turn in served.records.ended(client.api_key, 1)] != ["running"]


def test_a_bridge_that_is_stopped_while_its_database_is_away_stops(serve: Serve, connect: Connect) -> None:
    """And does not wait for it longer than the grace period."""
    served = serve()
    client = connect(served)
    served.upstream.always(CHAT, chat.streamed_calls(CALL))
    assert client.ask("Hi").status_code == 200
    with locked(served):
        assert client.ask("Hi").status_code == 529
        began = time.monotonic()
        served.bridge.stop(signal.SIGTERM)
        assert time.monotonic() - began < 25
