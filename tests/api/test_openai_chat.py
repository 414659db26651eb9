"""The official `openai` SDK against the bridge: chat completions to every kind of upstream, errors, the record."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessage
from pydantic import BaseModel

from tests.api.conftest import Serve, Served
from tests.servers import chat
from tests.servers.client import Client
from tests.servers.ports import wait_until
from tests.servers.script import Abort, Gate, json_answer, sse_answer
from tests.servers.upstream import ScriptedUpstream

MODEL = "openai/gpt-test"
HELLO: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


@pytest.fixture
def sdk(served: Served, client: Client) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.bridge.url}/v1", api_key=client.api_key, max_retries=0) as connected:
        yield connected


def result(message: ChatCompletionMessage, *contents: str) -> list[Any]:
    """The messages that answer all calls of this one."""
    given = zip(message.tool_calls or [], contents, strict=True)
    return [{"role": "tool", "tool_call_id": call.id, "content": content} for call, content in given]


def test_a_whole_answer(served: Served, sdk: openai.OpenAI) -> None:
    served.chat(chat.text("Hi."))
    answer = sdk.chat.completions.create(model=MODEL, messages=HELLO, seed=5, stop=["END"])
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hi.", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 7)
    assert answer.model == MODEL
    assert (answer._request_id or "").startswith("req_")
    sent = served.sent()
    assert sent["messages"] == HELLO
    assert (sent["model"], sent["seed"], sent["stop"]) == ("gpt-test", 5, ["END"])
    assert "max_tokens" not in sent


def test_a_stream_with_usage(served: Served, sdk: openai.OpenAI) -> None:
    served.chat(chat.streamed_text("Hel", "lo"))
    stream = sdk.chat.completions.create(
        model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None and chunks[-1].usage.total_tokens == 18
    assert stream.response.headers["x-conversation-id"].startswith("conv_")


def test_text_is_shown_as_it_comes(served: Served, sdk: openai.OpenAI) -> None:
    gate = Gate()
    served.chat(chat.streamed_text("Hel", gate, "lo"))
    stream = sdk.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
    seen = ""
    for chunk in stream:
        seen += chunk.choices[0].delta.content or ""
        if seen == "Hel":
            gate.open()
    assert seen == "Hello"


@pytest.mark.parametrize("streaming", [False, True])
def test_a_chain_of_tool_calls_is_one_conversation(
    served: Served, client: Client, sdk: openai.OpenAI, streaming: bool
) -> None:
    given = (("up_1", "get_weather", {"city": "Rome"}), ("up_2", "get_weather", {"city": "Oslo"}))
    served.chat(chat.streamed_calls(*given) if streaming else chat.calls(*given), chat.text("Both are sunny."))
    if streaming:
        with sdk.chat.completions.stream(model=MODEL, messages=HELLO, tools=TOOLS) as stream:
            message: ChatCompletionMessage = stream.get_final_completion().choices[0].message
    else:
        message = sdk.chat.completions.create(model=MODEL, messages=HELLO, tools=TOOLS).choices[0].message
    calls = [call for call in message.tool_calls or [] if call.type == "function"]
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": "Rome"}, {"city": "Oslo"}]
    echoed = message.model_dump(exclude={"parsed"}, exclude_none=True)
    for call in echoed["tool_calls"]:
        call["function"].pop("parsed_arguments", None)
        call.pop("index", None)
    history = [*HELLO, echoed, *result(message, "sunny", "sunny too")]
    answer = sdk.chat.completions.create(model=MODEL, messages=history, tools=TOOLS)
    assert answer.choices[0].message.content == "Both are sunny."
    sent = served.sent()["messages"]
    assert [said["role"] for said in sent] == ["system", "user", "assistant", "tool", "tool"]
    assert [said.get("tool_call_id") for said in sent[-2:]] == ["up_1", "up_2"]
    (conversation,) = client.conversations()
    assert conversation["turns"] == 2
    assert [row["status"] for row in client.mappings(conversation["id"])] == ["answered", "answered"]
    assert [entry.input_tokens for entry in served.records.usage(client.api_key)] == [11, 11]


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "tool", "tool_call_id": "call_x", "content": "?"}, "messages[2].tool_call_id"),
        (
            {"role": "user", "content": [{"type": "text", "text": "See:"}, {"type": "file", "file": {"file_id": "f"}}]},
            "messages[2].content[1]",
        ),
    ],
)
def test_what_is_wrong_is_named_as_the_client_counts(sdk: openai.OpenAI, message: Any, param: str) -> None:
    """Its system prompt is a message, too; to the bridge it is none."""
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.chat.completions.create(model=MODEL, messages=[*HELLO, message])
    assert refused.value.param == param
    assert "tool_use_id" not in refused.value.message


def test_an_answer_that_thinks_between_its_texts_is_known_again(
    served: Served, client: Client, sdk: openai.OpenAI
) -> None:
    """A chat message has one text: the client cannot send back two."""
    said = [chat.chunk({"content": "One. "}), chat.chunk({"reasoning_content": "hm"}), chat.chunk({"content": "Two."})]
    served.chat(sse_answer(*said, *chat.ending("stop")), chat.text("Again."))
    message = sdk.chat.completions.create(model=MODEL, messages=HELLO).choices[0].message
    assert message.content == "One. Two."
    history: list[Any] = [
        *HELLO,
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": "And?"},
    ]
    sdk.chat.completions.create(model=MODEL, messages=history)
    assert [conversation["turns"] for conversation in client.conversations()] == [2]


def test_only_what_is_new_can_be_sent(served: Served, sdk: openai.OpenAI) -> None:
    served.chat(chat.text("Hi."), chat.text("Again."))
    headers = {"x-conversation-id": "chat/1"}
    sdk.chat.completions.create(model=MODEL, messages=HELLO, tools=TOOLS, extra_headers=headers)
    more: list[Any] = [{"role": "user", "content": "And?"}]
    headers["x-conversation-mode"] = "append"
    sdk.chat.completions.create(model=MODEL, messages=more, extra_headers=headers)
    sent = served.sent()
    assert [said["content"] for said in sent["messages"]] == ["Be brief.", "Hello", "Hi.", "And?"]
    assert sent["tools"][0]["function"]["name"] == "get_weather"


class Weather(BaseModel):
    city: str
    degrees: int


def test_structured_output(served: Served, sdk: openai.OpenAI) -> None:
    served.chat(chat.text('{"city": "Rome", "degrees": 21}'))
    answer = sdk.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Weather)
    assert answer.choices[0].message.parsed == Weather(city="Rome", degrees=21)
    wanted = served.sent()["response_format"]["json_schema"]
    assert (wanted["strict"], list(wanted["schema"]["properties"])) == (True, ["city", "degrees"])


def test_json_mode_and_images_pass(served: Served, sdk: openai.OpenAI) -> None:
    served.chat(chat.text("{}"))
    parts: list[Any] = [
        {"type": "text", "text": "JSON, please"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    sdk.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": parts}], response_format={"type": "json_object"}
    )
    assert served.sent()["messages"] == [{"role": "user", "content": parts}]
    assert served.sent()["response_format"] == {"type": "json_object"}


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("fields", "status", "param", "code"),
    [
        ({"n": 2}, 400, "n", None),
        ({"messages": [{"role": "user", "content": [{"type": "x"}]}]}, 400, "messages[0].content[0].type", None),
        ({"model": "gemini/g"}, 404, "model", "model_not_found"),
    ],
)
def test_a_wrong_request_is_an_error_that_the_sdk_knows(
    sdk: openai.OpenAI, fields: dict[str, Any], status: int, param: str, code: str | None
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        sdk.chat.completions.create(**({"model": MODEL, "messages": HELLO} | fields))
    assert (caught.value.status_code, caught.value.param, caught.value.code) == (status, param, code)
    assert (caught.value.request_id or "").startswith("req_")


def test_a_wrong_key_is_an_authentication_error(served: Served) -> None:
    stranger = openai.OpenAI(base_url=f"{served.bridge.url}/v1", api_key="sk-wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.chat.completions.create(model=MODEL, messages=HELLO)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("answered", "kind", "code"),
    [
        ((400, "Unsupported value"), openai.BadRequestError, None),
        ((400, "maximum context length is 8192 tokens. However, you requested 9000 tokens"), openai.BadRequestError,
         "context_length_exceeded"),
        ((401, "Incorrect API key"), openai.InternalServerError, None),
        ((404, "no such model"), openai.NotFoundError, "model_not_found"),
        ((429, "slow down"), openai.RateLimitError, "rate_limit_exceeded"),
        ((503, "busy"), openai.InternalServerError, "overloaded"),
    ],
)  # fmt: skip
def test_an_upstreams_error_is_one_that_the_sdk_knows(
    served: Served,
    sdk: openai.OpenAI,
    answered: tuple[int, str],
    kind: type[Exception],
    code: str | None,
    streaming: bool,
) -> None:
    served.chat(chat.error(*answered, {"retry-after": "7"}))
    with pytest.raises(kind) as caught:
        sdk.chat.completions.create(model=MODEL, messages=HELLO, stream=streaming)
    assert isinstance(caught.value, openai.APIStatusError)
    assert caught.value.code == code
    assert caught.value.response.headers["x-conversation-id"]


def test_an_error_inside_a_stream_is_raised_and_nothing_follows_it(
    served: Served, client: Client, sdk: openai.OpenAI
) -> None:
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), Abort()))
    stream = sdk.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
    assert [next(stream).choices[0].delta.content for _ in range(2)] == ["", "Hel"]
    with pytest.raises(openai.APIError, match="closed the connection"):
        next(stream)
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), Abort()))
    body = {"model": MODEL, "messages": HELLO, "stream": True}
    raw = client.http.post("/chat/completions", json=body).text
    assert raw.count('data: {"error"') == 1
    assert "[DONE]" not in raw


def test_a_budget_that_is_spent_is_a_quota_and_not_retried(served: Served) -> None:
    key = served.records.issue(daily_tokens=0)
    sdk = openai.OpenAI(base_url=f"{served.bridge.url}/v1", api_key=key, max_retries=5)
    with pytest.raises(openai.RateLimitError) as caught:
        sdk.chat.completions.create(model=MODEL, messages=HELLO)
    assert (caught.value.code, caught.value.type) == ("insufficient_quota", "insufficient_quota")


def test_a_client_that_leaves_ends_the_upstreams_call(served: Served, client: Client) -> None:
    gate = Gate()
    served.chat(chat.streamed_text("Hel", gate, "lo"))
    body = {"model": MODEL, "messages": HELLO, "stream": True}
    with client.http.stream("POST", "/v1/chat/completions", json=body) as response:
        next(response.iter_bytes())
    assert served.upstream.requests[-1].abandoned.wait(5)
    wait_until(lambda: served.records.turns(client.api_key).get().status == "aborted", "the turn is stored")


def test_a_retry_of_the_sdk_gets_the_answer_that_was_made(served: Served, client: Client) -> None:
    served.chat(chat.text("Once."))
    body = {"model": MODEL, "messages": HELLO}
    headers = {"x-conversation-id": "retried", "x-stainless-retry-count": "0"}
    first = client.http.post("/v1/chat/completions", json=body, headers=headers)
    again = client.http.post("/v1/chat/completions", json=body, headers=headers | {"x-stainless-retry-count": "1"})
    assert again.json()["choices"] == first.json()["choices"]
    assert len(served.upstream.requests) == 1


# ---------------------------------------------------------------- other upstreams


def test_gemini_and_anthropic_answer_chat_clients_too(serve: Serve, shared_upstream: ScriptedUpstream) -> None:
    served = serve(
        GEMINI_BASE_URL=f"{shared_upstream.url}/gemini", ANTHROPIC_UPSTREAM_URL=f"{shared_upstream.url}/claude"
    )
    sdk = openai.OpenAI(base_url=served.bridge.url, api_key=served.bridge.api_key, max_retries=0)
    part = {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}}
    candidate = {"content": {"role": "model", "parts": [{"text": "Look."}, part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8}
    served.upstream.queue(
        "/gemini/models/gemini-3-pro:generateContent", json_answer({"candidates": [candidate], "usageMetadata": usage})
    )
    message = sdk.chat.completions.create(model="gemini-3-pro", messages=HELLO, tools=TOOLS).choices[0].message
    assert message.content == "Look."
    assert served.sent()["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    for streaming in (False, True):
        served.upstream.queue("/claude/messages", claude(streaming))
        history = [*HELLO, message.model_dump(exclude_none=True), *result(message, "sunny")]
        answer: Any = sdk.chat.completions.create(
            model="anthropic/claude", messages=history, tools=TOOLS, stream=streaming
        )
        if streaming:
            chunks = list(answer)
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "It is sunny."
            assert "".join(getattr(chunk.choices[0].delta, "reasoning_content", "") for chunk in chunks) == "Hm."
        else:
            assert answer.choices[0].message.content == "It is sunny."
            assert answer.choices[0].message.reasoning_content == "Hm."
            assert answer.usage.prompt_tokens == 12
        sent = served.sent()
        assert (sent["max_tokens"], sent["system"][0]["text"]) == (32_000, "Be brief.")
        assert [block["type"] for block in sent["messages"][1]["content"]] == ["text", "tool_use"]
        assert sent["tools"][0]["input_schema"]["type"] == "object"


def claude(streaming: bool) -> Any:
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "It is sunny."}]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 2, "output_tokens": 4}
    message = {"id": "msg_01", "type": "message", "role": "assistant", "model": "claude", "usage": usage}
    if not streaming:
        return json_answer(message | {"content": content, "stop_reason": "end_turn", "stop_sequence": None})
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message | {"content": []}}]
    for index, (block, delta) in enumerate(
        [
            ({"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "Hm."}),
            ({"type": "text", "text": ""}, {"type": "text_delta", "text": "It is sunny."}),
        ]
    ):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}})
    events.append({"type": "message_stop"})
    return sse_answer(*(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events))


def test_without_v1_the_path_is_the_same(served: Served, client: Client) -> None:
    served.chat(chat.text("Hi."))
    answer = client.http.post("/chat/completions", json={"model": MODEL, "messages": HELLO})
    assert answer.json()["object"] == "chat.completion"
    refused = client.http.get("/v1/chat/completions")
    assert (refused.status_code, refused.json()["error"]["type"]) == (405, "invalid_request_error")
