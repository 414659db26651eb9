"""`/v1/embeddings`: passed on, counted, and refused where there are none."""

from collections.abc import Iterator

import openai
import pytest

from tests.api.conftest import Serve, Served
from tests.servers import chat
from tests.servers.client import Client
from tests.servers.ports import wait_until
from tests.servers.script import json_answer
from tests.servers.upstream import ScriptedUpstream

PATH = "/openai/v1/embeddings"
MODEL = "openai/text-embedding-3-small"
VECTORS = {
    "object": "list",
    "model": "text-embedding-3-small",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -0.5]}],
    "usage": {"prompt_tokens": 4, "total_tokens": 4},
}


@pytest.fixture
def sdk(served: Served, client: Client) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.bridge.url}/v1", api_key=client.api_key, max_retries=0) as connected:
        yield connected


def test_a_request_is_passed_on_and_counted(served: Served, client: Client, sdk: openai.OpenAI) -> None:
    served.upstream.queue(PATH, json_answer(VECTORS))
    answer = sdk.embeddings.create(model=MODEL, input="Hello", encoding_format="float", dimensions=2)
    assert answer.data[0].embedding == [0.5, -0.5]
    assert served.sent() == {
        "model": "text-embedding-3-small", "input": "Hello", "encoding_format": "float", "dimensions": 2,
    }  # fmt: skip
    assert served.upstream.requests[-1].headers["authorization"] == "Bearer sk-upstream-secret"
    wait_until(lambda: served.records.usage(client.api_key).exists(), "the ledger has it")
    entry = served.records.usage(client.api_key).get()
    assert (entry.upstream, entry.model, entry.status) == ("openai", "text-embedding-3-small", "complete")
    assert (entry.input_tokens, entry.estimated, entry.requested_model) == (4, False, MODEL)
    assert client.conversations() == []


def test_what_the_upstream_does_not_count_is_estimated(served: Served, client: Client, sdk: openai.OpenAI) -> None:
    served.upstream.queue(PATH, json_answer({"data": VECTORS["data"]}))
    sdk.embeddings.create(model=MODEL, input="Hello", encoding_format="float")
    wait_until(lambda: served.records.usage(client.api_key).exists(), "the ledger has it")
    entry = served.records.usage(client.api_key).get()
    assert entry.estimated
    assert entry.input_tokens > 0


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, openai.BadRequestError), (401, openai.InternalServerError), (429, openai.RateLimitError)],
)
def test_an_upstreams_error_is_one_that_the_sdk_knows(
    served: Served, client: Client, sdk: openai.OpenAI, status: int, kind: type[Exception]
) -> None:
    served.upstream.queue(PATH, chat.error(status, "no"))
    with pytest.raises(kind):
        sdk.embeddings.create(model=MODEL, input="Hello")
    wait_until(lambda: served.records.usage(client.api_key).exists(), "the ledger has it")
    assert served.records.usage(client.api_key).get().status == "error"


def test_what_an_upstream_said_of_a_text_is_not_in_the_log(served: Served, client: Client) -> None:
    served.upstream.queue(PATH, chat.error(400, "'canary-of-a-text' is too short"))
    refused = client.http.post("/v1/embeddings", json={"model": MODEL, "input": "canary-of-a-text"})
    log = served.bridge.log.read_text()
    assert "canary-of-a-text" in refused.text
    told = f"{refused.headers['request-id']} status=400 error=invalid_request_error what=UpstreamRefused"
    assert (told in log, "canary-of-a-text" in log) == (True, False)


def test_what_is_not_an_embedding_is_not_passed_on(served: Served, sdk: openai.OpenAI) -> None:
    served.upstream.queue(PATH, json_answer({"odd": True}))
    with pytest.raises(openai.InternalServerError):
        sdk.embeddings.create(model=MODEL, input="Hello")


def test_a_wrong_request_is_refused_with_its_field(sdk: openai.OpenAI, client: Client) -> None:
    with pytest.raises(openai.NotFoundError):
        sdk.embeddings.create(model="mistral/x", input="Hello")
    answer = client.http.post("/embeddings", json={"model": MODEL})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input")


def test_retries_gemini_and_upstreams_without_embeddings(serve: Serve, shared_upstream: ScriptedUpstream) -> None:
    url = shared_upstream.url
    served = serve(
        GEMINI_BASE_URL=f"{url}/gemini",
        GEMINI_API_KEY="gemini-secret",
        DEEPSEEK_BASE_URL=f"{url}/deepseek",
        BRIDGE_UPSTREAM_RETRIES="1",
    )
    sdk = openai.OpenAI(base_url=served.bridge.url, api_key=served.bridge.api_key, max_retries=0)
    served.upstream.queue("/gemini/openai/embeddings", chat.error(503, "busy"), json_answer(VECTORS))
    assert sdk.embeddings.create(model="gemini-embedding-001", input="Hello", encoding_format="float").data
    assert served.upstream.requests[-1].headers["authorization"] == "Bearer gemini-secret"
    key = served.bridge.api_key
    wait_until(lambda: served.records.usage(key).count() == 2, "the ledger has both attempts")
    assert [(entry.attempt, entry.status) for entry in served.records.usage(key)] == [(1, "error"), (2, "complete")]
    with pytest.raises(openai.BadRequestError, match="DeepSeek has no embeddings"):
        sdk.embeddings.create(model="deepseek/x", input="Hello")


def test_limits_count_for_embeddings_too(served: Served) -> None:
    served.upstream.queue(PATH, json_answer(VECTORS))
    limited = served.records.issue(requests_per_minute=1)
    sdk = openai.OpenAI(base_url=f"{served.bridge.url}/v1", api_key=limited, max_retries=0)
    sdk.embeddings.create(model=MODEL, input="Hello", encoding_format="float")
    with pytest.raises(openai.RateLimitError):
        sdk.embeddings.create(model=MODEL, input="Hello", encoding_format="float")


def test_the_demo_embeds_too(served: Served, sdk: openai.OpenAI) -> None:
    coded = sdk.embeddings.create(model="demo/demo", input=["Hello", "Hello", "Bye"])
    one, two, three = (item.embedding for item in coded.data)
    assert one == two != three
    (plain,) = sdk.embeddings.create(model="demo/demo", input="Hello", encoding_format="float").data
    assert plain.embedding == pytest.approx(one)
