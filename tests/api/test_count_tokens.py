"""`/v1/messages/count_tokens`: offline, of what would be sent, corrected by what upstreams report."""

import base64
import json
import threading
from collections.abc import Iterator
from struct import pack
from typing import Any

import anthropic
import httpx
import pytest

from tests.servers.bridge import Bridge
from tests.servers.script import json_answer
from tests.servers.upstream import ScriptedUpstream

PATH = "/v1/messages/count_tokens"
PROSE = "The quick brown fox jumps over the lazy dog, and nobody minds. " * 40


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as server:
        yield server


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory, upstream: ScriptedUpstream) -> Iterator[Bridge]:
    environment = {"VLLM_BASE_URL": f"{upstream.url}/v1", "MODEL_MAP_DEFAULT": "vllm/model"}
    bridge = Bridge(tmp_path_factory.mktemp("bridge") / "home", environment)
    bridge.start()
    yield bridge
    bridge.stop()


def count(bridge: Bridge, body: dict[str, Any], **headers: str) -> int:
    status, answer = bridge.post(PATH, {"model": "vllm/counted"} | body, headers)
    assert status == 200, answer
    assert answer.keys() == {"input_tokens"}
    tokens: int = answer["input_tokens"]
    return tokens


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def answered(prompt_tokens: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Yes."}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 2, "total_tokens": prompt_tokens + 2}
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def test_the_sdk_gets_a_number_and_no_upstream_is_asked(bridge: Bridge, upstream: ScriptedUpstream) -> None:
    client = anthropic.Anthropic(base_url=bridge.url, api_key=bridge.api_key)
    counted = client.messages.count_tokens(
        model="claude-opus-4-5", messages=[{"role": "user", "content": "Hello, world"}]
    )
    assert 5 <= counted.input_tokens <= 15
    assert upstream.requests == []


def test_tools_system_and_images_count(bridge: Bridge) -> None:
    plain = count(bridge, said("Look."))
    tool = {"name": "look", "description": PROSE, "input_schema": {"type": "object"}}
    assert count(bridge, said("Look.") | {"tools": [tool]}) > plain + 400
    assert count(bridge, said("Look.") | {"system": PROSE}) > plain + 400
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + pack(">II", 750, 1000) + b"\0" * 300_000
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png).decode()}
    content = [{"type": "text", "text": "Look."}, {"type": "image", "source": source}]
    assert plain + 900 < count(bridge, {"messages": [{"role": "user", "content": content}]}) < plain + 1100


def test_what_an_upstream_reports_corrects_the_next_count(bridge: Bridge, upstream: ScriptedUpstream) -> None:
    body = {"model": "vllm/learned"} | said(PROSE)
    before = count(bridge, body)
    upstream.queue("/v1/chat/completions", json_answer(answered(2 * before)))
    assert bridge.post("/v1/messages", body | {"max_tokens": 5})[0] == 200
    assert 1.5 * before < count(bridge, body) <= 2 * before
    assert count(bridge, said(PROSE)) == before  # another model's number stays


def test_a_request_that_only_appends_counts_its_history_too(bridge: Bridge, upstream: ScriptedUpstream) -> None:
    headers = {"x-conversation-id": "counted"}
    upstream.queue("/v1/chat/completions", json_answer(answered(0)))
    bridge.post("/v1/messages", {"model": "vllm/m", "max_tokens": 5} | said(PROSE), headers)
    alone = count(bridge, {"model": "vllm/m"} | said("More."))
    appended = {**headers, "x-conversation-mode": "append"}
    assert count(bridge, {"model": "vllm/m"} | said("More."), **appended) > alone + 400


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "tool_result", "tool_use_id": "toolu_nobody_knows", "content": PROSE}],
        [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}, {"type": "text", "text": PROSE}],
    ],
)
def test_what_could_not_be_sent_is_counted_all_the_same(bridge: Bridge, content: object) -> None:
    assert count(bridge, {"messages": [{"role": "user", "content": content}]}) > 400


def test_a_wrong_request_is_refused_by_its_path(bridge: Bridge) -> None:
    status, answer = bridge.post(PATH, {"model": "m", "messages": []})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert bridge.post(PATH, {"model": "xai/grok"} | said("?"))[0] == 404
    assert bridge.post(PATH, said("?") | {"model": "m"}, {"x-api-key": "sk-wrong"})[0] == 401


def test_twenty_three_at_once_as_claude_code_asks(bridge: Bridge) -> None:
    tools = [{"name": f"tool_{n}", "description": PROSE, "input_schema": {"type": "object"}} for n in range(23)]
    counts: list[int] = []

    def ask(number: int) -> None:
        counts.append(count(bridge, said(f"{number}") | {"tools": tools[number : number + 1]}))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(23)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 23
    assert max(counts) - min(counts) <= 2


def test_a_long_history_is_counted_the_same_each_time(bridge: Bridge) -> None:
    messages = [
        {"role": role, "content": f"{number} {PROSE}"} for number in range(30) for role in ("user", "assistant")
    ]
    assert len(json.dumps(messages)) > 140_000
    counts = {count(bridge, {"messages": [*messages, {"role": "user", "content": f"{number}"}]}) for number in range(9)}
    assert max(counts) - min(counts) <= 1


def test_what_an_upstream_does_not_report_is_counted_the_same_way(bridge: Bridge, upstream: ScriptedUpstream) -> None:
    body = {"model": "vllm/silent"} | said(PROSE)
    silent = answered(0)
    silent["choices"][0]["message"]["content"] = PROSE
    del silent["usage"]
    upstream.queue("/v1/chat/completions", json_answer(silent))
    usage = bridge.post("/v1/messages", body | {"max_tokens": 5})[1]["usage"]
    expected = count(bridge, body)
    assert usage["input_tokens"] == expected
    assert abs(usage["output_tokens"] - expected) < 20


def test_a_picture_does_not_look_like_a_long_prompt_at_the_start_of_a_stream(
    bridge: Bridge, upstream: ScriptedUpstream
) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(b"\0" * 600_000).decode()}
    asked = {"model": "vllm/seeing", "max_tokens": 5, "stream": True}
    asked["messages"] = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    upstream.queue("/v1/chat/completions", json_answer(answered(1500)))
    headers = {"x-api-key": bridge.api_key}
    stream = httpx.post(f"{bridge.url}/v1/messages", json=asked, headers=headers, timeout=30).text
    start = json.loads(stream.splitlines()[1].removeprefix("data: "))
    assert 1000 < start["message"]["usage"]["input_tokens"] < 3000
