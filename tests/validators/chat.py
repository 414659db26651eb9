"""OpenAI Chat Completions, as the strictest of its servers read it.

Alternation, leading system message and non-empty content are what chat templates demand (Mistral, llama.cpp, MiniMax);
pairing, ids and names what OpenAI itself does.
"""

from collections.abc import Iterator
from itertools import pairwise

from tests.validators.shapes import NAME, Json, blank, decode, duplicates, is_object, schema_object, unknown, words

TOP = words(
    "model messages tools tool_choice parallel_tool_calls stream stream_options max_tokens max_completion_tokens "
    "temperature top_p stop n user metadata response_format reasoning_effort seed prompt_cache_key store "
    "safety_identifier service_tier verbosity frequency_penalty presence_penalty logit_bias web_search_options "
    "prompt_cache_retention prompt_cache_options"
)
MESSAGE = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset({"role", "content", "tool_calls", "refusal", "name", "audio"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "file", "input_audio"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}


def validate(
    body: bytes,
    *,
    id_limit: int = 40,
    id_length: int = 0,
    extra: frozenset[str] = frozenset(),
    extra_message: frozenset[str] = frozenset(),
    prefill: str = "",
) -> list[str]:
    """`prefill` is the field that marks a last assistant message which the model shall continue.

    `id_length` is Mistral's mark: its validator also wants an answer between a result and the next user message.
    """
    request = decode(body)
    messages = request.get("messages", [])
    return [
        *unknown(request, TOP | extra, "body"),
        *_parameters(request),
        *_tools(request),
        *_roles(messages),
        *(_after_results(messages) if id_length else ()),
        *(
            each
            for index, message in enumerate(messages)
            for each in _message(message, index, extra_message | {prefill})
        ),
        *_pairing(messages),
        *_ids(messages, id_limit, id_length),
        *(f"messages: {prefill!r} before the last one" for message in messages[:-1] if prefill and prefill in message),
    ]


def _parameters(request: Json) -> Iterator[str]:
    if not request.get("model"):
        yield "you must provide a model parameter"
    if "max_tokens" in request and "max_completion_tokens" in request:
        yield "max_tokens and max_completion_tokens are set both"
    if "stream_options" in request and not request.get("stream"):
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    stop = request.get("stop", [])
    if isinstance(stop, list) and len(stop) > 4:
        yield "Invalid 'stop': array too long. Expected an array with maximum length 4"


def _tools(request: Json) -> Iterator[str]:
    tools = request.get("tools")
    if tools == []:
        yield "Invalid 'tools': empty array. Expected an array with minimum length 1"
    if len(tools or []) > 128:
        yield "Invalid 'tools': array too long. Expected an array with maximum length 128"
    names = [tool.get("function", {}).get("name", "") for tool in tools or []]
    for index, tool in enumerate(tools or []):
        path = f"tools[{index}]"
        yield from unknown(tool, frozenset({"type", "function"}), path)
        yield from unknown(tool["function"], frozenset({"name", "description", "parameters", "strict"}), path)
        if not NAME.fullmatch(names[index]):
            yield f"Invalid '{path}.function.name': {names[index]!r}"
        yield from schema_object(tool["function"].get("parameters"), path)
    yield from (f"tools: {name!r} is declared twice" for name in duplicates(names))
    if not tools and ("tool_choice" in request or "parallel_tool_calls" in request):
        yield "'tool_choice' and 'parallel_tool_calls' are only allowed when 'tools' are specified"
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and choice["function"]["name"] not in names:
        yield "Tool choice: function not found in 'tools'"


def _roles(messages: list[Json]) -> Iterator[str]:
    if not messages:
        yield "[] is too short - 'messages'"
    roles = [message.get("role") for message in messages]
    body = [role for role in roles if role not in ("system", "developer")]
    if roles[len(roles) - len(body) :] != body:
        yield "System message must be at the beginning."
    if len(roles) - len(body) > 1:
        yield "more than one system message"
    if body and body[0] != "user":
        yield f"the first message is of role {body[0]!r}"
    for one, other in pairwise(body):
        if one == other != "tool":
            yield f"Conversation roles must alternate user/assistant/user/assistant/...: two {one!r}"
    if "user" not in body:
        yield "no user message"


def _after_results(messages: list[Json]) -> Iterator[str]:
    for one, other in pairwise(messages):
        if (one.get("role"), other.get("role")) == ("tool", "user"):
            yield "Unexpected role 'user' after role 'tool'"


def _message(message: Json, index: int, extra: frozenset[str]) -> Iterator[str]:
    path, role = f"messages[{index}]", message.get("role")
    if role not in MESSAGE:
        yield f"Invalid value: {role!r} at {path}.role"
        return
    yield from unknown(message, MESSAGE[role] | (extra if role == "assistant" else frozenset()), path)
    content = message.get("content")
    if role == "assistant" and content is None:
        if not message.get("tool_calls"):
            yield f"{path}: Invalid assistant message: content or tool_calls must be set"
        return
    if isinstance(content, list):
        yield from _parts(content, path, PARTS[role])
    elif blank(content):
        yield f"{path}: must have non-empty content"


def _parts(parts: list[Json], path: str, allowed: set[str]) -> Iterator[str]:
    if not parts:
        yield f"{path}.content: empty array"
    for index, part in enumerate(parts):
        kind = part.get("type")
        if kind not in allowed:
            yield f"{path}.content[{index}]: Invalid value: {kind!r}"
        if kind == "text":
            yield from unknown(part, frozenset({"type", "text"}), f"{path}.content[{index}]")
            if blank(part.get("text")):
                yield f"{path}.content[{index}]: empty text"
        if kind == "image_url" and not part["image_url"].get("url", "").startswith(("data:image/", "http")):
            yield f"{path}.content[{index}]: invalid image url"


def _pairing(messages: list[Json]) -> Iterator[str]:
    """Each call is answered right after its message, once, in call order; no result stands alone."""
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            id_ = message.get("tool_call_id", "")
            if not waiting:
                yield (
                    f"messages[{index}]: messages with role 'tool' must be a response to a preceeding message "
                    "with 'tool_calls'"
                )
            elif waiting.pop(0) != id_:
                yield f"messages[{index}]: tool call result does not follow tool call (2013): {id_}"
            continue
        if waiting:
            yield (
                "an assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id': {waiting}"
            )
        waiting = [call.get("id", "") for call in message.get("tool_calls") or []]
    if waiting:
        yield f"tool calls at the end without results: {waiting}"


def _ids(messages: list[Json], id_limit: int, id_length: int) -> Iterator[str]:
    for index, message in enumerate(messages):
        if "tool_calls" not in message:
            continue
        calls, path = message["tool_calls"], f"messages[{index}].tool_calls"
        if not calls:
            yield f"Invalid '{path}': empty array"
        yield from (f"{path}: id {id_!r} is used twice" for id_ in duplicates([call.get("id", "") for call in calls]))
        for call in calls:
            yield from _call(call, path, id_limit, id_length)


def _call(call: Json, path: str, id_limit: int, id_length: int) -> Iterator[str]:
    yield from unknown(call, frozenset({"id", "type", "function"}), path)
    yield from unknown(call["function"], frozenset({"name", "arguments"}), path)
    id_ = call.get("id", "")
    if not id_ or len(id_) > id_limit:
        yield f"Invalid '{path}.id': string too long or empty: {id_!r}"
    if id_length and not (len(id_) == id_length and id_.isalnum() and id_.isascii()):
        yield f"Tool call id was {id_} but must be a-z, A-Z, 0-9, with a length of {id_length}."
    if call.get("type") != "function":
        yield f"{path}.type: {call.get('type')!r}"
    if not NAME.fullmatch(call["function"].get("name", "")):
        yield f"Invalid '{path}.function.name': {call['function'].get('name')!r}"
    if not is_object(call["function"].get("arguments")):
        yield f"{path}: invalid function arguments json string (2013)"
