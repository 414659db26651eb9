"""Requests of our own API gone wrong, from a seed: real ones with broken values, headers, parameters and paths."""
# ruff: noqa: E501 - a table reads best in its own lines

import copy
import json
import urllib.parse
from random import Random
from typing import Any, NamedTuple

from tests.servers.client import CLOCK, TOOL
from tests.torture.mutation import VALUES, changed

Json = dict[str, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo", "deep": [[{"a": None}]]}}
MESSAGES: Json = {
    "model": "claude-sonnet-4-5", "max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "stop_sequences": ["END"],
    "metadata": {"user_id": "user_1_account__session_00000000-0000-4000-8000-000000000000"}, "service_tier": "auto",
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "thinking": {"type": "enabled", "budget_tokens": 1024}, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "tools": [TOOL, {**CLOCK, "eager_input_streaming": True, "strict": True, "defer_loading": False}, {"type": "bash_20250124", "name": "bash"}],
    "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}, "container": None,
    "messages": [
        {"role": "user", "content": "What is the weather?"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "I look."}, CALL]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": False, "content": [
                {"type": "text", "text": "sunny"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            ]},
            {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
            {"type": "search_result", "title": "t", "source": "https://a.example", "content": [{"type": "text", "text": "x"}]},
            {"type": "text", "text": "And now?"},
        ]},
    ],
}  # fmt: skip
CHAT: Json = {
    "model": "gpt-4.1", "max_completion_tokens": 50, "temperature": 1, "n": 1, "stop": ["x"], "user": "u", "seed": 7, "logprobs": False,
    "stream_options": {"include_usage": True}, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}],
    "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": True, "reasoning_effort": "low",
    "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ],
}  # fmt: skip
HOSTED: Json = {
    "name": "look", "url": "https://tools.example/look", "method": "POST", "description": "d", "timeout": 5, "long_running": False, "kind": "http",
    "headers": {"x-key": "v"}, "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
}  # fmt: skip
BODIES: tuple[tuple[str, Json], ...] = (
    ("/v1/messages", MESSAGES),
    ("/v1/messages", {**MESSAGES, "stream": True}),
    ("/v1/messages", {**MESSAGES, "thread": {"type": "continue", "previous_message_id": "msg_1"}}),
    ("/v1/messages", {**MESSAGES, "mcp_servers": [{"type": "url", "url": "https://m.example", "name": "m", "authorization_token": "t"}]}),
    ("/anthropic/v1/messages", MESSAGES),
    ("/v1/messages/count_tokens", {key: value for key, value in MESSAGES.items() if key != "max_tokens"}),
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", {**CHAT, "stream": True}),
    ("/chat/completions", CHAT),
    ("/v1/embeddings", {"model": "text-embedding-3-small", "input": ["a", "b"], "encoding_format": "float", "dimensions": 3, "user": "u"}),
    ("/v1/hosted-tools", HOSTED),
)  # fmt: skip
TEXTS = (
    "", " ", "a", "\0", "\x7f", "é", "☃" * 50, "'", '"', "';--", "' OR 1=1 --", "%", "%00", "%2e%2e%2f", "../..", "..;/", "//", "x" * 300, "x" * 5000, "-1", "0", "1",
    "999999999999999999999", "1e9", "NaN", "true", "null", "[]", "{}", "${7*7}", "{{7*7}}", "<script>", "\r\nx-a: b", "\ud800", "conv_" + "0" * 32, "toolu_" + "0" * 24, "shared",
)  # fmt: skip
GETS = (
    "/v1/models", "/v1/models/{}", "/models", "/v1/conversations", "/v1/conversations/{}", "/v1/conversations/{}/tool-mappings", "/v1/conversations/{}/tool-mappings/{}",
    "/v1/hosted-tools", "/openapi.json", "/docs", "/{}", "/v1/{}", "/anthropic/{}", "/anthropic/v1/models", "/static/{}", "/metrics", "/livez", "/readyz", "/",
)  # fmt: skip
POSTS = ("/v1/conversations/{}/terminate", "/api/event_logging/batch", "/v1/{}", "/v1/conversations", "/v1/models")
DELETES = ("/v1/conversations/{}/tool-mappings/{}", "/v1/hosted-tools/{}", "/v1/conversations/{}")
PARAMETERS = ("limit", "after_id", "before_id", "q", "page", "beta")
HEADERS = (
    "x-conversation-id", "x-conversation-mode", "anthropic-version", "anthropic-beta", "x-claude-code-session-id", "x-claude-code-agent-id", "x-stainless-retry-count",
    "content-type", "content-encoding", "accept", "accept-encoding", "origin", "host", "cookie", "x-forwarded-for", "x-forwarded-proto", "range", "if-none-match", "expect", "x-request-id",
    "idempotency-key", "authorization",
)  # fmt: skip
VERSIONS = (
    "2023-06-01",
    "2026-10-21",
    "2023-01-01",
    "append",
    "application/json",
    "text/plain",
    "gzip",
    "identity",
    "100-continue",
)


class Request(NamedTuple):
    method: str
    path: str
    headers: list[tuple[str, bytes]]
    body: bytes


def asked(rng: Random) -> Request:
    headers = [(name, _header(rng)) for name in rng.sample(HEADERS, rng.choice((0, 0, 0, 1, 1, 2, 4)))]
    if rng.random() < 0.6:
        path, body = rng.choice(BODIES)
        return Request("POST", path + _query(rng, 0.1), headers, _body(rng, body))
    method, paths = rng.choice(
        (("GET", GETS), ("GET", GETS), ("POST", POSTS), ("DELETE", DELETES), (rng.choice(METHODS), GETS))
    )
    path = rng.choice(paths)
    while "{}" in path:
        path = path.replace("{}", _escaped(rng), 1)
    return Request(method, path + _query(rng, 0.7), headers, b"" if rng.random() < 0.8 else rng.randbytes(20))


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "QUERY")


def text(rng: Random) -> str:
    chosen = rng.choice(TEXTS)
    return chosen if rng.random() < 0.8 else chosen + rng.choice(TEXTS)


def _escaped(rng: Random) -> str:
    return urllib.parse.quote(text(rng).encode("utf-8", "surrogatepass"), safe="'/%" if rng.random() < 0.3 else "")


def _query(rng: Random, share: float) -> str:
    if rng.random() >= share:
        return ""
    return "?" + "&".join(f"{name}={_escaped(rng)}" for name in rng.sample(PARAMETERS, rng.choice((1, 1, 2))))


def _header(rng: Random) -> bytes:
    value = rng.choice(VERSIONS) if rng.random() < 0.4 else text(rng)
    raw = value.encode("utf-8", "surrogatepass")
    return raw.translate(None, b"\r\n\0\x7f").strip()[:4000]


def _body(rng: Random, body: Json) -> bytes:
    wrong: Any = copy.deepcopy(body)
    for key in rng.sample(sorted(wrong), rng.choice((0, 0, 2, 5)) if len(wrong) > 5 else 0):
        if key not in ("messages", "model", "input"):
            del wrong[key]
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        wrong = changed(rng, wrong)
    raw = json.dumps(wrong, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if rng.random() < 0.06:
        at = rng.randrange(len(raw))
        raw = (
            raw[:at]
            + rng.choice((b"", b"\0", b"\xff", b"]", b"{" * 3000, rng.randbytes(4)))
            + raw[at + rng.randrange(3) :]
        )
    return raw[: rng.randrange(len(raw))] if rng.random() < 0.03 else raw


# ---------------------------------------------------------------- the admin

LOOKUPS = (
    "",
    "__exact",
    "__in",
    "__isnull",
    "__gte",
    "__icontains",
    "__id",
    "__regex",
    "__digest",
    "__password__startswith",
)


def admin_query(rng: Random, fields: list[str]) -> str:
    names = [
        "q",
        "o",
        "p",
        "all",
        "e",
        "_facets",
        "_popup",
        "_to_field",
        "_changelist_filters",
        "form",
        "turn",
        "after",
        "page",
        "days",
        "range",
        "key",
        "since",
        "other",
    ]
    names += [rng.choice(fields) + rng.choice(LOOKUPS) for _ in range(6)] if fields else []
    return "?" + "&".join(f"{name}={_escaped(rng)}" for name in rng.sample(names, rng.choice((1, 1, 2, 3))))


def form_value(rng: Random, given: str) -> str:
    wrong = rng.choice((*TEXTS, *(value for value in VALUES if isinstance(value, str))))
    return given if rng.random() < 0.7 else wrong.encode("utf-8", "replace").decode()
