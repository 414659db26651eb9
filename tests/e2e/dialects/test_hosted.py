"""The chain when the bridge runs the tools: in one request of the client's, with the same demands of every model."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.e2e.dialects.conftest import NewChain
from tests.e2e.dialects.dialect import Turn
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME, NAMES, Provider, settings
from tests.e2e.dialects.script import STEPS, TOOLS, Chain, result_of
from tests.servers.bridge import Bridge
from tests.servers.client import Client, folded
from tests.servers.records import opened
from tests.servers.script import Answer, Recorded
from tests.servers.upstream import ScriptedUpstream

FAILED = "the tool answered HTTP 500: "
CALLS = {
    (call.name, str(call.arguments)): result_of(number, index)
    for number, step in enumerate(STEPS)
    for index, call in enumerate(step.calls)
}


class HostingModels(Models):
    """A failed tool's result begins with how it failed."""

    def _wrong(self, provider: Provider, chain: Chain, turns: list[Turn]) -> list[str]:
        plain = [
            turn._replace(results=[one._replace(text=one.text.replace(FAILED, "")) for one in turn.results])
            for turn in turns
        ]
        return super()._wrong(provider, chain, plain)


class ScriptedTools(ScriptedUpstream):
    """Each call of the script gets the script's result."""

    def _answer_for(self, request: Recorded) -> Answer:
        self.requests.append(request)
        result = CALLS[request.path.strip("/"), str(request.json())]
        return Answer((result.text.encode(),), 500 if result.is_error else 200, {"content-type": "text/plain"})


@pytest.fixture(scope="module")
def hosting_models() -> Iterator[HostingModels]:
    with HostingModels() as server:
        yield server


@pytest.fixture(scope="module")
def client(
    hosting_models: HostingModels, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("hosting")
    database = f"sqlite:///{folder}/bridge.sqlite3"
    environment = {"DATABASE_URL": database, "BRIDGE_TOOL_HOSTS": "127.0.0.1", **settings(hosting_models.url)}
    bridge = Bridge(folder / "home", environment)
    bridge.start()
    with ScriptedTools() as tools, django_db_blocker.unblock(), opened("hosting", database) as records:
        connected = Client(bridge.url, records.issue(hosted_tools=True))
        for tool in TOOLS:
            asked = {**tool, "url": f"{tools.url}/{tool['name']}"}
            assert connected.http.post("/v1/hosted-tools", json=asked).status_code == 200
        yield connected
        connected.close()
    bridge.stop()


def answered(client: Client, route: str, messages: list[Any], *, stream: bool, **headers: str) -> list[dict[str, Any]]:
    fields = {"model": route, "max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    if stream:
        return folded(client.events(*messages, headers=headers, **fields))
    answer = client.ask(*messages, headers=headers, **fields)
    assert answer.status_code == 200, answer.text
    content: list[dict[str, Any]] = answer.json()["content"]
    return content


def spoken(blocks: list[dict[str, Any]]) -> list[str]:
    return [block.get("text") or block["type"] for block in blocks if "thinking" not in block["type"]]


RESULT, CALL = "mcp_tool_result", "mcp_tool_use"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("echo", ["whole", "append"])
@pytest.mark.parametrize("name", NAMES)
def test_every_model_comes_to_its_end_in_one_request(
    name: str, echo: str, stream: bool, client: Client, hosting_models: HostingModels, new_chain: NewChain
) -> None:
    hosting_models.reset()
    chain, route = new_chain(), BY_NAME[name].route
    headers = {"X-Conversation-ID": chain.name, "X-Conversation-Mode": "append"} if echo == "append" else {}
    opening = {"role": "user", "content": f"{chain.mark} Go."}
    first = answered(client, route, [opening], stream=stream, **headers)
    assert hosting_models.refusals == []
    assert spoken(first) == ["I read a.", CALL, RESULT, CALL, CALL, RESULT, RESULT, "Both are done."]
    history = [opening, {"role": "assistant", "content": first}] if echo == "whole" else []
    second = answered(client, route, [*history, "Go on."], stream=stream, **headers)
    assert hosting_models.refusals == []
    assert spoken(second) == [CALL, RESULT, "All is done."]
    assert len(hosting_models.requests) == len(STEPS)
