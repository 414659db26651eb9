"""`/v1/models` in both shapes: what the configuration and the upstreams really offer."""

from collections.abc import Iterator

import anthropic
import openai
import pytest
from httpx import Client

from tests.api.conftest import Served
from tests.servers.bridge import Bridge
from tests.servers.script import json_answer
from tests.servers.upstream import ScriptedUpstream

OFFERED = ["claude-opus", "openai/gpt-5.5", "xai/grok-4", "demo/demo", "openai/gpt-5-mini", "xai/grok-code"]


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with ScriptedUpstream() as upstream:
        upstream.always("/openai/models", json_answer({"data": [{"id": "gpt-5.5"}, {"id": "gpt-5-mini"}]}))
        upstream.always("/xai/models", json_answer({"models": [{"name": "models/grok-code"}]}))
        upstream.always("/mistral/models", json_answer({"error": "no"}, 500))
        environment = {
            "OPENAI_BASE_URL": f"{upstream.url}/openai",
            "XAI_BASE_URL": f"{upstream.url}/xai",
            "MISTRAL_BASE_URL": f"{upstream.url}/mistral",
            "MODEL_MAP_OPUS": "openai/gpt-5.5",
            "MODEL_MAP_DEFAULT": "xai/grok-4",
        }
        bridge = Bridge(tmp_path_factory.mktemp("bridge") / "home", environment)
        bridge.start()
        yield bridge
        bridge.stop()


@pytest.fixture
def http(bridge: Bridge) -> Iterator[Client]:
    with Client(base_url=bridge.url, headers={"authorization": f"Bearer {bridge.api_key}"}) as client:
        yield client


def test_the_anthropic_sdk_lists_page_by_page(bridge: Bridge) -> None:
    client = anthropic.Anthropic(base_url=bridge.url, api_key=bridge.api_key)
    first = client.models.list(limit=2)
    assert (first.has_more, first.first_id, first.last_id) == (True, "claude-opus", "openai/gpt-5.5")
    assert [model.id for model in client.models.list(limit=2)] == OFFERED
    assert [model.id for model in client.models.list(before_id="xai/grok-4", limit=1).data] == ["openai/gpt-5.5"]
    assert first.data[0].display_name == "claude-opus (openai/gpt-5.5)"
    assert client.models.list(after_id=OFFERED[-1]).data == []
    assert client.models.list(lifecycle=["deprecated", "retired"]).data == []
    assert len(client.models.list(lifecycle=["active", "retired"]).data) == len(OFFERED)


def test_the_openai_sdk_lists_everything_and_retrieves(bridge: Bridge) -> None:
    for base in (f"{bridge.url}/v1", bridge.url):
        client = openai.OpenAI(base_url=base, api_key=bridge.api_key)
        assert [model.id for model in client.models.list()] == OFFERED
        assert client.models.retrieve("openai/gpt-5.5").owned_by == "openai"
        with pytest.raises(openai.NotFoundError) as caught:
            client.models.retrieve("gemini/gemini-3")
        assert caught.value.code == "model_not_found"


def test_any_name_that_has_a_route_can_be_retrieved(bridge: Bridge) -> None:
    client = anthropic.Anthropic(base_url=f"{bridge.url}/anthropic", api_key=bridge.api_key)
    assert client.models.retrieve("claude-opus-4-5-20251101").display_name.endswith("(openai/gpt-5.5)")
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("gemini/gemini-3")


def test_names_are_understood_in_any_letter_case(bridge: Bridge) -> None:
    client = anthropic.Anthropic(base_url=bridge.url, api_key=bridge.api_key)
    for name in ("OpenAI/gpt-5.5", "OPENAI/gpt-5.5", "CLAUDE-Opus-4"):
        assert client.models.retrieve(name).display_name.endswith("(openai/gpt-5.5)")
    assert client.models.retrieve("GPT-5.5").display_name.endswith("(openai/GPT-5.5)")
    with pytest.raises(anthropic.NotFoundError):  # and not MODEL_MAP_DEFAULT's
        client.models.retrieve("Gemini/gemini-3")


@pytest.mark.parametrize("path", ["/v1/models", "/models", "/anthropic/v1/models"])
def test_the_headers_decide_about_the_shape(http: Client, bridge: Bridge, path: str) -> None:
    assert http.get(path).json()["object"] == "list"
    for headers in ({"anthropic-version": "2023-06-01"}, {"x-api-key": bridge.api_key}):
        answer = http.get(path, headers=headers)
        assert answer.json()["has_more"] is False
        assert answer.headers["request-id"].startswith("req_")


def test_errors_have_the_shape_too(http: Client) -> None:
    wrong = {"authorization": "Bearer sk-wrong"}
    answer = http.get("/v1/models", headers=wrong)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    answer = http.get("/v1/models", headers={**wrong, "anthropic-version": "2023-06-01"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")
    version = {"anthropic-version": "2023-06-01"}
    for query, path in (
        ("limit=1001", "limit"),
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("after_id=nobody", "after_id"),
    ):
        answer = http.get(f"/v1/models?{query}", headers=version)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["message"].startswith(f"{path}: ")


def test_without_any_upstream_the_demo_is_what_there_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    bridge = Bridge(tmp_path_factory.mktemp("demo") / "home", {})
    bridge.start()
    try:
        client = openai.OpenAI(base_url=f"{bridge.url}/v1", api_key=bridge.api_key)
        assert [model.id for model in client.models.list()] == ["demo/demo"]
    finally:
        bridge.stop()


def test_a_key_sees_only_what_it_may_use(served: Served) -> None:
    key = served.records.issue(allowed_routes="openai/*\nclaude-*")
    client = openai.OpenAI(base_url=f"{served.bridge.url}/v1", api_key=key)
    assert [model.id for model in client.models.list()] == ["claude-sonnet", "openai/gpt-test"]
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("demo/demo")
