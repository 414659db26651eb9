"""Promise 4: whatever ids, headers and histories one key sends, nothing of another key's conversations comes back.

Every word of one tenant carries its canary; the upstream tells what it was sent. No canary may cross.
"""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.api.conftest import CHAT, Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import TOOL, Client, result
from tests.torture.ledger import SCALE, Proof, Trials

NAMES = ["shared", "conv_" + "0" * 32, "a/b", "x"]  # both tenants use them


class Tenant:
    def __init__(self, client: Client, canary: str) -> None:
        self.client = client
        self.canary = canary
        self.tool_use_ids: list[str] = []
        self.message_ids: list[str] = []
        self.conversations: list[str] = []

    @property
    def unique(self) -> list[str]:
        """Those whose names were minted for it: no other tenant can have them by chance."""
        return [name for name in self.conversations if name.startswith("conv_") and name not in NAMES]


@pytest.mark.timeout(240)
@pytest.mark.proves("isolation")
def test_no_canary_ever_crosses(serve: Serve, connect: Connect, proof: Proof, trials: Trials) -> None:
    served = serve()
    tenants = [Tenant(connect(served), f"CANARY-{name}-{random.getrandbits(64):x}") for name in ("alice", "bob")]
    for tenant in tenants:
        _live(served, tenant)
    served.upstream.reset()
    served.upstream.always(CHAT, chat.text("nothing"))
    # Some get an error, which tells what it is about.
    served.upstream.queue(CHAT, *[chat.error(400, "refused", param="messages")] * 200)
    with ThreadPoolExecutor(200 if SCALE else 24) as pool:
        for outcome in pool.map(lambda seed: _probe(seed, *tenants), range(trials(100_000, 2500))):
            if outcome is None:
                proof.passed()
            else:
                proof.failed(outcome)
    # What was sent upstream for one tenant never held the other's words: each request is told by its own canary.
    for request in served.upstream.requests:
        text = request.body.decode()
        assert sum(tenant.canary in text for tenant in tenants) <= 1, text
    for tenant in tenants:
        assert [tenant.client.get(f"/v1/conversations/{name}")["tool_mappings"] for name in tenant.unique] == [1, 1]


def _live(served: Served, tenant: Tenant) -> None:
    """Some conversations, of every kind, all about the canary, with prompts that both tenants share."""
    call = ("call_1", "get_weather", {"city": tenant.canary})
    for number in range(6):
        headers = [
            {"x-conversation-id": NAMES[number % len(NAMES)]},
            {"x-claude-code-session-id": "00000000-0000-4000-8000-000000000000"},
            {},
        ][number % 3]
        served.chat(chat.calls(call), chat.text(f"It is {tenant.canary}."))
        thread: dict[str, Any] = {"thread": {"type": "create"}} if number % 2 else {}
        first = tenant.client.ask("Same question", system="Same system", tools=[TOOL], headers=headers, **thread)
        answer = first.json()
        tool_use_id = answer["content"][0]["id"]
        history = [
            "Same question",
            {"role": "assistant", "content": answer["content"]},
            result(tool_use_id, tenant.canary),
        ]
        second = tenant.client.ask(*history, tools=[TOOL], headers=headers)
        tenant.tool_use_ids.append(tool_use_id)
        tenant.message_ids += [answer["id"], second.json()["id"]]
        tenant.conversations.append(first.headers["x-conversation-id"])


def _probe(seed: int, *tenants: Tenant) -> str | None:
    """One attempt of one tenant with the ids of the other; what leaked, if anything did."""
    chosen = random.Random(seed)
    attacker, victim = chosen.sample(tenants, 2)
    response = chosen.choice(ATTACKS)(chosen, attacker.client.http, victim)
    leaked = victim.canary in response.text or victim.canary in str(response.headers)
    # An attacker may well end its own turn that runs under the same name.
    if leaked or "internal error" in response.text:
        return f"probe {seed}: {response.status_code} {response.text[:500]}"
    return None


def _tool_id(chosen: random.Random, victim: Tenant) -> str:
    """A foreign one, or a guess near it."""
    tool_use_id = chosen.choice(victim.tool_use_ids)
    if chosen.random() < 0.2:
        place = chosen.randrange(6, len(tool_use_id))
        return tool_use_id[:place] + chosen.choice("abcXYZ019") + tool_use_id[place + 1 :]
    return tool_use_id


def _headers(chosen: random.Random, victim: Tenant) -> dict[str, str]:
    headers: dict[str, str] = {}
    if chosen.random() < 0.5:
        headers["x-conversation-id"] = chosen.choice(victim.conversations + NAMES)
        if chosen.random() < 0.5:
            headers["x-conversation-mode"] = "append"
    if chosen.random() < 0.3:
        headers["x-claude-code-session-id"] = "00000000-0000-4000-8000-000000000000"
    if chosen.random() < 0.3:
        headers["x-stainless-retry-count"] = str(chosen.randrange(3))
    return headers


def _ask(chosen: random.Random, http: httpx.Client, victim: Tenant) -> httpx.Response:
    id_ = _tool_id(chosen, victim)
    call = {"type": "tool_use", "id": id_, "name": "get_weather", "input": {}}
    told = {"role": "assistant", "content": [call]}
    histories: list[list[Any]] = [
        [{"role": "user", "content": "Same question"}],
        [result(id_, "mine")],
        [{"role": "user", "content": "Same question"}, told, result(id_, "mine")],
        [{"role": "user", "content": "Same question"}, told, {"role": "user", "content": "and?"}],
        [result(id_, "mine"), {"role": "assistant", "content": "x"}, {"role": "user", "content": "and?"}],
    ]
    asked: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": chosen.choice(histories)}
    asked["stream"] = chosen.random() < 0.5
    if chosen.random() < 0.5:
        asked |= {"system": "Same system", "tools": [TOOL]}
    if chosen.random() < 0.4:
        asked["thread"] = {"type": "continue", "previous_message_id": chosen.choice(victim.message_ids)}
    return http.post("/v1/messages", content=json.dumps(asked), headers=_headers(chosen, victim))


def _look(chosen: random.Random, http: httpx.Client, victim: Tenant) -> httpx.Response:
    name = chosen.choice(victim.conversations).replace("/", "%2F")
    path = chosen.choice(["", "/tool-mappings", f"/tool-mappings/{_tool_id(chosen, victim)}"])
    return http.get(f"/v1/conversations/{name}{path}")


def _list(chosen: random.Random, http: httpx.Client, victim: Tenant) -> httpx.Response:
    after = chosen.choice(victim.conversations)
    return http.get("/v1/conversations", params={"after_id": after} if chosen.random() < 0.5 else {})


def _end(chosen: random.Random, http: httpx.Client, victim: Tenant) -> httpx.Response:
    """Ends, at most, what the attacker itself has under that name."""
    return http.post(f"/v1/conversations/{chosen.choice(victim.unique)}/terminate")


def _count(chosen: random.Random, http: httpx.Client, victim: Tenant) -> httpx.Response:
    id_ = _tool_id(chosen, victim)
    asked = {"model": "claude-sonnet-4-5", "messages": [result(id_, "mine")], "system": "Same system", "tools": [TOOL]}
    return http.post("/v1/messages/count_tokens", json=asked, headers=_headers(chosen, victim))


def _chat(chosen: random.Random, http: httpx.Client, victim: Tenant) -> httpx.Response:
    """OpenAI's dialect shares conversations and tool calls with the other."""
    id_ = _tool_id(chosen, victim)
    messages = [{"role": "user", "content": "Same question"}, {"role": "tool", "tool_call_id": id_, "content": "mine"}]
    asked = {"model": "claude-sonnet-4-5", "messages": messages[chosen.randrange(2) :], "stream": chosen.random() < 0.5}
    return http.post("/v1/chat/completions", json=asked, headers=_headers(chosen, victim))


def _operate(chosen: random.Random, http: httpx.Client, victim: Tenant) -> httpx.Response:
    """Search, exports and everything else of the operators', with a client's key."""
    number = chosen.randrange(1, 20)
    page = chosen.choice(
        [
            f"conversation/?q={chosen.choice(victim.tool_use_ids)}",
            f"conversation/{number}/export/?form={chosen.choice(['jsonl', 'csv'])}",
            f"conversation/{number}/toolchain/",
            f"turn/{number}/hops/",
            "toolmapping/?q=get_weather",
        ]
    )
    bearer = {"authorization": f"Bearer {http.headers['x-api-key']}"} if chosen.random() < 0.5 else {}
    return http.get(f"/admin/conversations/{page}", headers=bearer)


def _forget(chosen: random.Random, http: httpx.Client, victim: Tenant) -> httpx.Response:
    name = chosen.choice(victim.unique)
    return http.delete(f"/v1/conversations/{name}/tool-mappings/{_tool_id(chosen, victim)}")


ATTACKS = [_ask, _ask, _ask, _ask, _look, _list, _end, _count, _chat, _operate, _forget]
