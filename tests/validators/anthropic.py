"""Anthropic's Messages API: consecutive messages of a role count as one, results come first, ids are unique."""

import re
from collections.abc import Iterator
from itertools import groupby

from tests.validators.shapes import Json, blank, decode, duplicates

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ID = re.compile(r"[a-zA-Z0-9_-]+")
REQUIRED = ("model", "messages", "max_tokens")
BLOCKS = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"},
    "system": {"text", "tool_addition", "tool_removal"},
}
RESULT = {"text", "image", "search_result", "document", "tool_reference"}


def validate(body: bytes) -> list[str]:
    request = decode(body)
    messages = [_normal(message) for message in request.get("messages", [])]
    return [
        *(f"{field}: Field required" for field in REQUIRED if field not in request),
        *_system(request),
        *_tools(request),
        *_roles(messages),
        *(each for index, message in enumerate(messages) for each in _message(message, index)),
        *_pairing(messages),
        *_unique(messages),
        *_thinking(request, messages),
        *_searches(messages),
    ]


def _normal(message: Json) -> Json:
    content = message.get("content")
    return {**message, "content": [{"type": "text", "text": content}] if isinstance(content, str) else content}


def _system(request: Json) -> Iterator[str]:
    system = request.get("system", [])
    for block in system if isinstance(system, list) else [{"text": system}]:
        if blank(block.get("text")):
            yield "system: text content blocks must be non-empty"


def _tools(request: Json) -> Iterator[str]:
    names = [tool.get("name", "") for tool in request.get("tools", [])]
    for index, name in enumerate(names):
        if not NAME.fullmatch(name):
            yield f"tools.{index}.custom.name: String should have at most 128 characters"
    yield from (f"tools: Tool names must be unique: {name}" for name in duplicates(names))
    choice = request.get("tool_choice", {})
    if choice and not names:
        yield "tool_choice may only be specified while providing tools"
    if choice.get("type") == "tool" and choice.get("name") not in names:
        yield f"Tool '{choice.get('name')}' not found in provided tools"


def _roles(messages: list[Json]) -> Iterator[str]:
    if not messages:
        yield "messages: at least one message is required"
    first = next((message for message in messages if message.get("role") != "system"), {})
    if first.get("role") != "user":
        yield "messages: first message must use the user role"


def _message(message: Json, index: int) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role not in BLOCKS:
        yield f"messages.{index}.role: unexpected role {role!r}"
        return
    if not content:
        yield f"messages.{index}: all messages must have non-empty content"
        return
    for position, block in enumerate(content):
        yield from _block(block, f"messages.{index}.content.{position}", BLOCKS[role])
    if role == "assistant" and content[-1].get("type") in ("thinking", "redacted_thinking"):
        yield f"messages.{index}: The final block in an assistant message cannot be `thinking`."


def _block(block: Json, path: str, allowed: set[str]) -> Iterator[str]:
    kind = block.get("type")
    if kind not in allowed:
        yield f"{path}: `{kind}` blocks cannot be here"
    if kind == "text" and blank(block.get("text")):
        yield f"{path}: text content blocks must be non-empty"
    if kind == "thinking" and (not block.get("signature") or not isinstance(block.get("thinking"), str)):
        yield f"{path}: Invalid `signature` in `thinking` block"
    if kind == "tool_use":
        if not ID.fullmatch(block.get("id", "")):
            yield f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if not isinstance(block.get("input"), dict):
            yield f"{path}.tool_use.input: Input should be a valid dictionary"
        if not NAME.fullmatch(block.get("name", "")):
            yield f"{path}.tool_use.name: {block.get('name')!r}"
    if kind == "tool_result":
        content = block.get("content", [])
        for position, inner in enumerate(content if isinstance(content, list) else []):
            yield from _block(inner, f"{path}.content.{position}", RESULT)


def _pairing(messages: list[Json]) -> Iterator[str]:
    waiting: list[str] = []
    for role, group in groupby(messages, key=lambda message: message.get("role")):
        content = [block for message in group for block in message.get("content") or []]
        results = [block.get("tool_use_id", "") for block in content if block.get("type") == "tool_result"]
        first = [block.get("type") == "tool_result" for block in content[: len(results)]]
        if sorted(set(results) & set(waiting)) != sorted(waiting) or not all(first):
            yield (
                f"`tool_use` ids were found without `tool_result` blocks immediately after: {waiting}. Each `tool_use` "
                "block must have a corresponding `tool_result` block in the next message."
            )
        yield from (
            f"unexpected `tool_use_id` found in `tool_result` blocks: {id_}" for id_ in results if id_ not in waiting
        )
        yield from (f"each tool_use must have a single result. Found multiple: {id_}" for id_ in duplicates(results))
        calls = [block.get("id", "") for block in content if block.get("type") == "tool_use"]
        waiting = calls if role == "assistant" else []
    if waiting:
        yield f"`tool_use` ids were found without `tool_result` blocks immediately after: {waiting}"


def _unique(messages: list[Json]) -> Iterator[str]:
    ids = [b.get("id", "") for m in messages for b in m.get("content") or [] if b.get("type") == "tool_use"]
    yield from (f"`tool_use` ids must be unique: {id_}" for id_ in duplicates(ids))


def _thinking(request: Json, messages: list[Json]) -> Iterator[str]:
    """With `enabled` thinking, the answer that a pending tool loop hangs on begins with a thinking block."""
    if request.get("thinking", {}).get("type") != "enabled" or not messages:
        return
    if messages[-1].get("role") == "assistant":
        yield "prefilling assistant messages is not supported with thinking"
    results = any(block.get("type") == "tool_result" for block in messages[-1].get("content") or [])
    answers = [message for message in messages if message.get("role") == "assistant"]
    if results and answers and answers[-1]["content"][0].get("type") not in ("thinking", "redacted_thinking"):
        yield "Expected `thinking` or `redacted_thinking`, but found `tool_use`."


def _searches(messages: list[Json]) -> Iterator[str]:
    """A search stands beside its result, whose pages only Anthropic has encrypted; one may be paused at the end."""
    for index, message in enumerate(messages):
        content = message.get("content") or []
        calls = [b.get("id") for b in content if b.get("type") == "server_tool_use" and b.get("name") == "web_search"]
        results = {b.get("tool_use_id"): b.get("content") for b in content if b.get("type") == "web_search_tool_result"}
        if index < len(messages) - 1:
            yield from (
                f"`web_search` tool use {id_} was found without its result" for id_ in calls if id_ not in results
            )
        yield from (
            f"unexpected `tool_use_id` in `web_search_tool_result`: {id_}" for id_ in results if id_ not in calls
        )
        for pages in results.values():
            if not isinstance(pages, dict | list) or not all(
                isinstance(page, dict) for page in pages if isinstance(pages, list)
            ):
                yield f"messages.{index}: `web_search_tool_result`.content: Input should be a valid list"
            elif isinstance(pages, list) and not all(page.get("encrypted_content") for page in pages):
                yield f"messages.{index}: Invalid `encrypted_content` in `search_result` block"
